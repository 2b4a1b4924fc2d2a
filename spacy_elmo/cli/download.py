"""``python -m spacy elmo download``: downloads published weights, to be used by their name."""

from __future__ import annotations

from typing import Annotated

import typer
from wasabi import msg

from ..weights.catalogue import PUBLISHED, addresses, cache_folder, downloaded
from . import options


@options.app.command("download")
def download_cli(
    sources: Annotated[list[str] | None, typer.Argument(help="Name from the list; or the URL of a zip; or two URLs, of options.json and of the HDF5 file", metavar="NAME|URL...", show_default=False)] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name for the weights (default: the given one, or from the address)")] = None,
    checksums: Annotated[list[str] | None, typer.Option("--sha256", "-s", help="Checksum of the file, in hexadecimal; for two files give it twice, in their order", show_default=False)] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Download published weights.

    The command converts the files and stores the weights in your cache folder ($SPACY_ELMO_CACHE),
    where weights = "NAME" finds them without a network. Nothing else in this package downloads
    anything. Without an argument, the command lists the weights that it knows by name, with their
    addresses.
    --force downloads them again; they must be the same files, unless --sha256 gives other
    checksums.
    """
    if not sources:
        _print_list(as_json)
        return
    with options.report_errors("Cannot download the weights", as_json=as_json):
        from ..weights.download import download

        result = download(sources, name, checksums or (), force, quiet)
    if as_json:
        options.print_json(result)
    elif not quiet:
        for file in result["files"]:
            print(f"SHA-256 {file['sha256']}  {file['url']}")
        what = "Downloaded" if result["files"] else "Already downloaded:"
        msg.good(f"{what} the weights {result['name']}", result["path"])
        print(
            f'Use them as: nlp.add_pipe("elmo", config={{"model": {{"weights": "{result["name"]}"}}}})'
        )


def _print_list(as_json: bool) -> None:
    """Print the weights that have a name, and those that have been downloaded."""
    there = downloaded()
    if as_json:
        published = {name: {**entry, "urls": addresses(name)} for name, entry in PUBLISHED.items()}
        options.print_json(
            {"cache": str(cache_folder()), "downloaded": there, "published": published}
        )
        return
    for name, entry in PUBLISHED.items():
        size = f"{entry['megabytes']} MB, " if "megabytes" in entry else ""
        print(f"{name}{' (downloaded)' if name in there else ''}")
        print(f"  {entry['lang']}, {size}{entry['text']}")
        places = addresses(name) or [f"project/weights/{name} in a clone: there is no release yet"]
        print(*(f"  {place}" for place in places), "", sep="\n")
    others = [name for name in there if name not in PUBLISHED]
    print(f"Cache folder: {cache_folder()}; other weights there: {', '.join(others) or 'none'}")
