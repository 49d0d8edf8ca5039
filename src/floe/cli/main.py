"""`floe`: the command line. Imports are made where they are used, so that help and errors come at once."""

import sys
from typing import Annotated, NoReturn

import typer

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3

app = typer.Typer(
    name="floe",
    help="Log storage for Kafka clients, with records in object storage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Where Kafka clients connect [127.0.0.1:9092]"),
]
Advertise = Annotated[
    str | None, typer.Option("--advertise", metavar="HOST:PORT", help="The address that clients are told")
]
Data = Annotated[str | None, typer.Option("--data", metavar="DIR", help="The broker's own folder [.floe]")]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="Object store: file:///DIR, s3://, gs://, az:// [DIR/objects]"
    ),
]
Http = Annotated[
    str | None,
    typer.Option("--http", metavar="HOST:PORT", help="Health and metrics, or off [127.0.0.1:8080]"),
]
Native = Annotated[
    str | None, typer.Option("--native", metavar="HOST:PORT", help="Native clients, or off [127.0.0.1:9192]")
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="Settings file [floe.toml if it is here]")
]
Extra = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="KEY=VALUE", help="Any setting; may be given again and again"),
]


@app.command()
def serve(
    listen: Listen = None,
    advertise: Advertise = None,
    data: Data = None,
    store: StoreUrl = None,
    http: Http = None,
    native: Native = None,
    config: Config = None,
    extra: Extra = None,
) -> None:
    """Run a broker until it is told to stop. Every setting: docs/reference/settings.md."""
    from floe.cli.serve import serve as run

    flags = {
        "listeners": listen,
        "advertised.listeners": advertise,
        "data.dir": data,
        "store.url": store,
        "http.listen": http,
        "native.listen": native,
    }
    run(flags=flags, assignments=extra or [], config=config)


@app.command()
def version() -> None:
    """Print the version."""
    from floe import __version__

    print(f"floe {__version__}")


def fail(problem: str, hint: str, code: int) -> NoReturn:
    """Say what is wrong and what to try, and end."""
    print(f"floe: {problem}", file=sys.stderr)
    if hint:
        print(f"try:  {hint}", file=sys.stderr)
    raise SystemExit(code)


def main() -> None:
    """The entry point of the console script."""
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
