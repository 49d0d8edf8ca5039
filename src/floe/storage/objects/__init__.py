"""The RemoteStorageManager: object stores by URL."""
