"""A chart, as SVG, of the share of its ceiling that each case reaches."""
from html import escape

from results import ceiling_of

_ROW, _LEFT, _WIDTH, _RIGHT, _TOP = 18, 340, 420, 90, 64
_COLORS = {"copy": "#4477aa", "sgemm": "#228833", "tcp": "#aa7744"}
_NAMES = {"copy": "memory copy", "sgemm": "bare sgemm", "tcp": "plain TCP"}


def _text(x, y, text, anchor="start", size=12, color="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" '
            f'text-anchor="{anchor}">{escape(text)}</text>')


def _rect(x, y, width, height, color):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" fill="{color}"/>')


def _line(x, top, bottom, color, width=1):
    return (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" '
            f'stroke="{color}" stroke-width="{width}"/>')


def _x(share):
    return _LEFT + _WIDTH * min(share, 1.0)


def _legend():
    parts, x = [], _LEFT
    for kind, color in _COLORS.items():
        parts += [_rect(x, 34, 10, 10, color),
                  _text(x + 14, 43, "of " + _NAMES[kind], size=11)]
        x += 110
    return parts + [_line(x, 32, 46, "#cc3311", 2),
                    _text(x + 6, 43, "goal", size=11)]


def _row(result, y):
    share = result["of_ceiling"]
    middle = y + _ROW / 2 - 2
    parts = [_text(_LEFT - 8, y + 11, result["name"], "end"),
             _rect(_LEFT, y, _x(share["median"]) - _LEFT, _ROW - 5,
                   _COLORS[ceiling_of(result)]),
             f'<line x1="{_x(share["min"]):.1f}" x2="{_x(share["max"]):.1f}" '
             f'y1="{middle:.1f}" y2="{middle:.1f}" stroke="#222"/>']
    if "bar" in result:
        parts.append(_line(_x(result["bar"]), y - 2, y + _ROW - 3, "#cc3311", 2))
    parts.append(_text(_LEFT + _WIDTH + 8, y + 11, f'{share["median"]:.2f}'))
    return parts


def chart(title, results):
    """`results` that have a share, in their order; bars end at 1."""
    rows = [result for result in results if ceiling_of(result)]
    bottom = _TOP + _ROW * len(rows)
    width, height = _LEFT + _WIDTH + _RIGHT, bottom + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{height}" font-family="sans-serif">',
             _rect(0, 0, width, height, "#fff"), _text(12, 20, title, size=14)]
    parts += _legend()
    for tenth in range(0, 11, 2):
        parts += [_line(_x(tenth / 10), _TOP - 6, bottom, "#ddd"),
                  _text(_x(tenth / 10), bottom + 16, f"{tenth / 10:.1f}",
                        "middle", 11)]
    for i, result in enumerate(rows):
        parts += _row(result, _TOP + _ROW * i)
    return "\n".join(parts + ["</svg>"]) + "\n"
