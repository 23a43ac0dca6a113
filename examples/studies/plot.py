# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG text: bars in panels, and lines, alone or in panels."""
import math
from html import escape

# Okabe and Ito's colours, told apart by everybody.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"


def number(v):
    """Three digits, never as 1e+03."""
    if v == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(v))))
    text = f"{v:.{digits}f}"
    return text[:-2] if text.endswith(".0") else text


def ticks(top, about=5):
    """Round steps from 0 that reach `top`."""
    raw = top / about
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw * 0.999)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


class Canvas:
    def __init__(self, width):
        self.width, self.parts = width, []

    def text(self, x, y, what, size=12, anchor="start", more=""):
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' "
                          f"text-anchor='{anchor}'{more}>{escape(what)}</text>")

    def line(self, x1, y1, x2, y2, colour="#ccc", width=1):
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' "
                          f"y2='{y2:.1f}' stroke='{colour}' "
                          f"stroke-width='{width}'/>")

    def rect(self, x, y, w, h, colour):
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{w:.1f}' "
                          f"height='{h:.1f}' fill='{colour}'/>")

    def legend(self, names, x, y):
        """Entries side by side; returns y below them."""
        for i, name in enumerate(names):
            wide = 30 + 7.2 * len(name)
            if x + wide > self.width - 10:
                x, y = 20, y + 20
            self.rect(x, y - 10, 12, 12, COLOURS[i])
            self.text(x + 18, y, name)
            x += wide
        return y + 12

    def svg(self, height):
        body = "\n".join(self.parts)
        return (f"<svg xmlns='http://www.w3.org/2000/svg' "
                f"viewBox='0 0 {self.width} {height:.0f}' {FONT}>\n"
                f"<rect width='100%' height='100%' fill='#fff'/>\n"
                f"{body}\n</svg>\n")


def bars(title, panels, stacked=False, columns=2, note=""):
    """`panels`: (title with unit, labels, [(series, values)])."""
    c = Canvas(900)
    c.text(20, 28, title, 16)
    y = c.legend([s for s, _ in panels[0][2]], 20, 54) if len(panels[0][2]) > 1 else 44
    left = 22 + 7.3 * max(len(x) for p in panels for x in p[1])
    wide, bottom = c.width / columns, y
    for i, (head, labels, series) in enumerate(panels):
        x0 = (i % columns) * wide
        if i % columns == 0:
            y = bottom
        high = 22 if stacked or len(series) == 1 else 8 + 13 * len(series)
        end = panel(c, x0, y + 26, wide, left, head, labels, series, high, stacked)
        bottom = max(bottom, end)
    if note:
        bottom += 18
        c.text(20, bottom, note, 11, more=" fill='#555'")
    return c.svg(bottom + 14)


def panel(c, x0, y, wide, left, head, labels, series, high, stacked):
    total = [sum(s[1][k] for s in series) for k in range(len(labels))]
    top = max(total if stacked else [v for s in series for v in s[1]])
    grid = ticks(top, 4 if wide < 600 else 8)
    scale = (wide - left - 76) / grid[-1]
    x = x0 + left + 8
    c.text(x0 + 20, y, head, 13, more=" font-weight='bold'")
    y += 12
    end = y + high * len(labels)
    for g in grid:
        c.line(x + g * scale, y, x + g * scale, end)
        c.text(x + g * scale, end + 14, f"{g:g}", 10, "middle")
    for k, label in enumerate(labels):
        c.text(x - 6, y + high / 2 + 4, label, 12, "end")
        at = x
        for j, (_, values) in enumerate(series):
            size = values[k] * scale
            if stacked:
                c.rect(at, y + 3, size, high - 6, COLOURS[j])
                at += size
                continue
            thick = high - 6 if len(series) == 1 else 12
            top_y = y + 3 + (0 if len(series) == 1 else 13 * j)
            c.rect(x, top_y, size, thick, COLOURS[j])
            c.text(x + size + 4, top_y + thick / 2 + 4, number(values[k]), 10)
        if stacked:
            c.text(at + 4, y + high / 2 + 4, number(total[k]), 10)
        y += high
    c.line(x, end - high * len(labels), x, end, "#444")
    return end + 24


def value(text):
    """A cell of a table; "-" has no point."""
    return math.nan if text == "-" else float(text)


def decades(low, high):
    """1, 2, 5, 10 ... around what is to be shown, or finer steps if few are."""
    for within in ((1, 2, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
                   [k / 4 for k in range(4, 40)]):
        steps = [k * 10.0 ** e for e in range(-6, 13) for k in within]
        first = max(i for i, s in enumerate(steps) if s <= low)
        last = min(i for i, s in enumerate(steps) if s >= high)
        if last - first > 2:
            break
    return steps[first:last + 1]


def lines(title, xlabel, ylabel, xs, series, note=""):
    """Lines, both axes logarithmic: what scales is straight."""
    c = Canvas(760)
    c.text(20, 28, title, 16)
    y0 = c.legend([s for s, _ in series], 20, 54) + 22
    bottom = axes(c, 80, y0, 640, 300, xlabel, ylabel, xs, series)
    if note:
        bottom += 12
        c.text(20, bottom, note, 11, more=" fill='#555'")
    return c.svg(bottom + 12)


def line_panels(title, ylabel, panels, columns=2, note=""):
    """`panels`: (xlabel, xs, lines, rings): two lists of (series, values) with
    the same names; the second is drawn as a ring around each point."""
    c = Canvas(900)
    c.text(20, 28, title, 16)
    bottom = c.legend([s for s, _ in panels[0][2]], 20, 54)
    wide = c.width / columns
    for i, (xlabel, xs, series, rings) in enumerate(panels):
        if i % columns == 0:
            y0 = bottom + 16
        bottom = axes(c, i % columns * wide + 70, y0, wide - 90, 190, xlabel,
                      ylabel, xs, series, rings)
    if note:
        bottom += 16
        c.text(20, bottom, note, 11, more=" fill='#555'")
    return c.svg(bottom + 12)


def axes(c, x0, y0, width, height, xlabel, ylabel, xs, series, rings=()):
    """Returns y below the axes and their titles."""
    values = [v for _, vs in [*series, *rings] for v in vs if not math.isnan(v)]
    grid = decades(min(values), max(values))
    place = math.log2
    span = place(xs[-1]) - place(xs[0])
    px = [x0 + (place(v) - place(xs[0])) / span * width for v in xs]

    def py(v):
        return y0 + height * (1 - math.log(v / grid[0]) /
                              math.log(grid[-1] / grid[0]))

    for g in grid:
        c.line(x0, py(g), x0 + width, py(g))
        c.text(x0 - 8, py(g) + 4, f"{g:g}", 11, "end")
    for x, v in zip(px, xs):
        c.line(x, y0 + height, x, y0 + height + 5, "#444")
        c.text(x, y0 + height + 19, f"{v:g}", 11, "middle")
    c.line(x0, y0 + height, x0 + width, y0 + height, "#444")
    c.text(x0 + width / 2, y0 + height + 40, xlabel, 12, "middle")
    left = x0 - 56
    c.text(left, y0 + height / 2, ylabel, 12, "middle",
           f" transform='rotate(-90 {left:g} {y0 + height / 2:.0f})'")
    for i, (_, values) in enumerate(series):
        known = [(x, v) for x, v in zip(px, values) if not math.isnan(v)]
        points = " ".join(f"{x:.1f},{py(v):.1f}" for x, v in known)
        c.parts.append(f"<polyline points='{points}' fill='none' "
                       f"stroke='{COLOURS[i]}' stroke-width='2.5'/>")
        for x, v in known:
            c.parts.append(f"<circle cx='{x:.1f}' cy='{py(v):.1f}' r='3.5' "
                           f"fill='{COLOURS[i]}'/>")
    for i, (_, values) in enumerate(rings):
        for x, v in zip(px, values):
            if not math.isnan(v):
                c.parts.append(f"<circle cx='{x:.1f}' cy='{py(v):.1f}' r='6.5' "
                               f"fill='none' stroke='{COLOURS[i]}'/>")
    return y0 + height + 52
