"""Results as a table for people."""


def number(value, unit):
    """`12.3 GB/s`."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _time(milliseconds):
    return (f"{milliseconds:.3g} ms" if milliseconds >= 0.1
            else f"{milliseconds * 1e3:.3g} us")


def _rate(result):
    if "flops_per_second" in result:
        return number(result["flops_per_second"], "FLOP/s")
    if "bytes_per_second" in result:
        return number(result["bytes_per_second"], "B/s")
    if "p50_us" in result:
        return f"p50 {result['p50_us']:.0f} us, p99 {result['p99_us']:.0f} us"
    return ""


def _share(result):
    if "of_ceiling" not in result:
        return ""
    share = result["of_ceiling"]
    text = f"{share['median']:.2f} ({share['min']:.2f}-{share['max']:.2f})"
    if "bar" in result:
        sign = ">=" if share["median"] >= result["bar"] else "BELOW"
        text += f" {sign} {result['bar']:.2f}"
    return text


def _cpu(result):
    if "client_cpu_s_per_gb" not in result:
        return ""
    return (f"{result['client_cpu_s_per_gb']:.2f} + "
            f"{result['server_cpu_s_per_gb']:.2f}")


def _row(result):
    if "error" in result:
        return [result["name"], "FAILED", result["error"], "", ""]
    return [result["name"], _time(result["time_ms"]["median"]), _rate(result),
            _share(result), _cpu(result)]


def table(results):
    """Aligned columns; medians, and in brackets the least and the most."""
    rows = [["case", "time", "rate", "of ceiling", "CPU s/GB"]]
    return aligned(rows + [_row(result) for result in results])


def aligned(rows):
    """Rows of texts, each column as wide as its widest."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows)
