"""The logic at a vnode's leader, one concern per module; all state is in the vnode's store."""
