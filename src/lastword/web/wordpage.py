"""A page of words, for when the page itself cannot be shown."""

from __future__ import annotations

from starlette.responses import Response


def page_of_words(status: int, title: str, text: str) -> Response:
    """A page of words, for when the page itself cannot be shown."""
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>lastword: {title}</title></head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )
    return Response(html, status_code=status, media_type="text/html")


def page_that_leads(path: str) -> Response:
    """A page that leads on by itself. A redirect would still be the step of whoever led here."""
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="refresh" content="0;url={path}"><title>lastword</title></head>'
        f'<body><main><p><a href="{path}">Open the page</a></p></main></body></html>'
    )
    return Response(html, media_type="text/html")
