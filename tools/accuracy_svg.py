# SPDX-License-Identifier: Apache-2.0
"""The pictures of accuracy-page: plain SVG in the colours of the page."""
import math

STYLE = ("<style>.i{fill:#444}.l{stroke:#888;fill:none}"
         "@media(prefers-color-scheme:dark){.i{fill:#bbb}}</style>")
BLUE, ORANGE, GREEN = "#3b82c4", "#d97a2b", "#2f9e6e"


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Picture:
    """Collects elements; coordinates are pixels from the upper left corner."""

    def __init__(self, width, height, title):
        self.out = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
            'font-family="sans-serif" font-size="12">' % (width, height),
            "<title>%s</title>" % escaped(title), STYLE]

    def text(self, x, y, text, anchor="start", more=""):
        self.out.append('<text class="i" x="%.0f" y="%.0f" text-anchor="%s"%s>'
                        "%s</text>" % (x, y, anchor, more, escaped(text)))

    def line(self, x1, y1, x2, y2, opacity=".3", dash=""):
        dash = ' stroke-dasharray="%s"' % dash if dash else ""
        self.out.append('<path class="l" stroke-opacity="%s"%s d="M%.1f %.1f '
                        'L%.1f %.1f"/>' % (opacity, dash, x1, y1, x2, y2))

    def stroke(self, points, colour, width=2):
        path = "L".join("%.1f %.1f" % p for p in points)
        self.out.append('<path d="M%s" fill="none" stroke="%s" '
                        'stroke-width="%g"/>' % (path, colour, width))

    def dots(self, points, colour, size=3, opacity=".45"):
        """Many dots as one path of points with round ends."""
        if points:
            path = "".join("M%.0f %.0fh0" % p for p in points)
            self.out.append('<path d="%s" stroke="%s" stroke-width="%g" '
                            'stroke-opacity="%s" stroke-linecap="round"/>'
                            % (path, colour, size, opacity))

    def box(self, x, y, width, height, colour, opacity):
        self.out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" '
                        'fill="%s" fill-opacity="%.2f"/>'
                        % (x, y, width, height, colour, opacity))

    def done(self):
        return "\n".join(self.out + ["</svg>", ""])


def clipped(value, most):
    return max(-most, min(most, value))


def families(rows):
    """rows: label, error, left out (None), targets of both (None)."""
    left, width, step, top = 250, 480, 20, 34
    most = 5 * math.ceil(20 * max([0.1] + [v for r in rows for v in r[1:]
                                           if v is not None]))
    high = top + step * len(rows)
    p = Picture(left + width + 30, high + 36,
                "Mean errors of families of runs, and their targets")

    def x(v):
        return left + 100 * v / most * width

    for e in range(0, most + 1, 5):
        p.line(x(e / 100), top - 8, x(e / 100), high)
        p.text(x(e / 100), high + 16, "%d %%" % e, "middle")
    for i, (label, error, apart, target, target_apart) in enumerate(rows):
        y = top + step * i + 8
        p.text(left - 10, y + 4, label, "end")
        for value, goal, colour in ((error, target, BLUE),
                                    (apart, target_apart, ORANGE)):
            if goal is not None:
                p.stroke([(x(goal), y - 6), (x(goal), y + 6)], colour)
            if value is not None:
                p.dots([(x(value), y)], colour, 8, "1")
    for at, text, colour in ((left, "in the fit", BLUE),
                             (left + 110, "family left out", ORANGE)):
        p.dots([(at, 12)], colour, 8, "1")
        p.text(at + 10, 16, text)
    p.text(left + 240, 16, "vertical lines: their targets")
    return p.done()


def quantile_bins(points, n):
    """Means of x and y in n bins of equally many points, and their errors."""
    points = sorted(points)
    n = max(1, min(n, len(points) // 8))
    out = []
    for i in range(n):
        part = points[len(points) * i // n:len(points) * (i + 1) // n]
        if not part:
            continue
        y = sum(v for _, v in part) / len(part)
        spread = sum((v - y) ** 2 for _, v in part) / max(1, len(part) - 1)
        out.append((sum(v for v, _ in part) / len(part), y,
                    math.sqrt(spread / len(part))))
    return out


def panel(p, at, size, title, points):
    """Residuals against the fraction of one cause."""
    (x0, y0), (width, height) = at, size
    limit = 0.4
    most = max(0.1, math.ceil(10 * max([0.1] + [v for v, _ in points])) / 10)

    def place(point):
        return (x0 + point[0] / most * width,
                y0 + (0.5 - clipped(point[1], limit) / (2 * limit)) * height)

    for e in (-0.4, -0.2, 0, 0.2, 0.4):
        y = place((0, e))[1]
        p.line(x0, y, x0 + width, y, ".3" if e else ".9")
        p.text(x0 - 5, y + 4, "%+.1f" % e if e else "0", "end")
    for fraction in (0, 0.5, 1):
        p.text(x0 + fraction * width, y0 + height + 14,
               "%.0f %%" % (100 * most * fraction), "middle")
    p.text(x0, y0 - 8, title)
    p.dots([place(v) for v in points], BLUE)
    bins = quantile_bins(points, 6)
    p.stroke([place((x, y)) for x, y, _ in bins], ORANGE)
    for x, y, error in bins:
        p.stroke([place((x, y - error)), place((x, y + error))], ORANGE, 3)


def mechanisms(panels):
    """panels: title and points (fraction of the step, residual)."""
    columns, width, height = 3, 210, 120
    rows = (len(panels) + columns - 1) // columns
    p = Picture(columns * (width + 60) + 10, rows * (height + 56) + 28,
                "Residuals against the fraction of the step by cause")
    for i, (title, points) in enumerate(panels):
        at = (44 + i % columns * (width + 60), 26 + i // columns * (height + 56))
        panel(p, at, (width, height), title, points)
    p.text(44, rows * (height + 56) + 18,
           "up: log(predicted / measured); right: fraction of the predicted step; "
           "line: means of equally many runs, and their standard errors")
    return p.done()


def strips(groups):
    """groups: heading, then (label, residuals) of each strip."""
    left, width, step, limit = 250, 500, 18, 0.4
    lines = sum(1 + len(strip) for _, strip in groups)
    high = 20 + step * lines
    p = Picture(left + width + 30, high + 30,
                "Residuals by device, precision, nodes and kind of model")

    def x(v):
        return left + (0.5 + clipped(v, limit) / (2 * limit)) * width

    for e in (-0.4, -0.2, 0, 0.2, 0.4):
        p.line(x(e), 14, x(e), high, ".3" if e else ".9")
        p.text(x(e), high + 16, "%+.1f" % e if e else "0", "middle")
    y = 20
    for heading, strip in groups:
        p.text(20, y + 4, heading, "start", ' font-weight="bold"')
        y += step
        for label, values in strip:
            p.text(left - 10, y + 4, "%s (%d)" % (label, len(values)), "end")
            p.dots([(x(v), y + 2 * (i % 5 - 2))
                    for i, v in enumerate(sorted(values))], BLUE, 4, ".5")
            middle = x(sum(values) / len(values))
            p.stroke([(middle, y - 6), (middle, y + 6)], ORANGE, 3)
            y += step
    return p.done()


def grid(rows, columns, cells, title):
    """A table of errors; darker is worse.  cells: {(row, column): error}."""
    left, width, step, top = 150, 96, 24, 30
    p = Picture(left + width * len(columns) + 10, top + step * len(rows) + 10,
                title)
    for i, name in enumerate(columns):
        p.text(left + width * (i + 0.5), top - 10, name, "middle")
    for k, row in enumerate(rows):
        y = top + step * k
        p.text(left - 10, y + 16, row, "end")
        for i, column in enumerate(columns):
            if (row, column) not in cells:
                continue
            error = cells[row, column]
            p.box(left + width * i + 1, y + 1, width - 2, step - 2, ORANGE,
                  min(0.85, 4 * error))
            p.text(left + width * (i + 0.5), y + 16, "%.1f %%" % (100 * error),
                   "middle")
    return p.done()


def sizes(series):
    """series: name and points (bytes, residual) of collectives."""
    left, top, width, height, limit = 60, 30, 600, 230, 0.8
    low, high = 10, 34
    p = Picture(left + width + 30, top + height + 50,
                "Residuals of collectives against their size")

    def place(point):
        at = min(high, max(low, math.log2(point[0])))
        return (left + (at - low) / (high - low) * width,
                top + (0.5 - clipped(point[1], limit) / (2 * limit)) * height)

    for e in (-0.8, -0.4, 0, 0.4, 0.8):
        y = place((1024, e))[1]
        p.line(left, y, left + width, y, ".3" if e else ".9")
        p.text(left - 6, y + 4, "%+.1f" % e if e else "0", "end")
    for power, name in ((10, "1 KiB"), (20, "1 MiB"), (30, "1 GiB")):
        x = place((2 ** power, 0))[0]
        p.line(x, top, x, top + height)
        p.text(x, top + height + 16, name, "middle")
    for i, (name, points) in enumerate(series):
        colour = (BLUE, ORANGE, GREEN)[i % 3]
        p.dots([place(v) for v in points], colour, 4, ".4")
        p.dots([(left + 200 * i, 12)], colour, 8, "1")
        p.text(left + 200 * i + 10, 16, "%s: %d" % (name, len(points)))
    p.text(left, top + height + 38, "up: log(predicted / measured) of the time")
    return p.done()
