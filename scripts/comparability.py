"""Whether numbers of two runs may stand side by side as those of two versions: the same machine in the
same state, the same compiler, the same questions. What differs on purpose, commit and binary, may."""

# Fields of manifest.json, by path. A path that ends in an object speaks of all its leaves.
MUST_AGREE = (
    "machine",
    "environment.cpu", "environment.topology", "environment.caches", "environment.hypervisor",
    "environment.mitigations", "environment.frequency.governor", "environment.frequency.boost",
    "environment.pages.page_bytes", "environment.pages.transparent_huge_pages",
    "environment.pages.transparent_huge_pages_defrag", "environment.aslr",
    "environment.aslr_disabled_for_process", "environment.cgroup_cpu_quota",
    "environment.clock.source", "targets.supported", "targets.best",
    "provenance.compiler", "provenance.flags", "provenance.build_type", "provenance.assertions",
    "provenance.c_library", "provenance.libraries",
    "spec.measure.stream_lookups",
)
# Times may depend on them, and seldom do; a difference is told.
SHOULD_AGREE = ("environment.kernel", "environment.pages.huge_pages_total", "memory_limit_bytes",
                "spec.measure.pass_seconds", "spec.measure.passes", "spec.measure.seed")
# How many CPUs a run may use matters, not which.
COUNTED = ("environment.allowed_cpus", "cpus")

_ABSENT = object()


def _at(document, path):
    for step in path.split("."):
        if not isinstance(document, dict) or step not in document:
            return _ABSENT
        document = document[step]
    return document


def _leaves(value, path):
    """(path, value) of what lies in objects below `value`; reasons of nulls are no facts."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name in sorted(value):
        if not name.endswith("_reason") and name != "reason":
            yield from _leaves(value[name], f"{path}.{name}")


def _differences(a, b, paths):
    for path in paths:
        values = [_at(manifest, path) for manifest in (a, b)]
        if _ABSENT in values:
            # An older record does not say; that is told elsewhere, and no difference.
            continue
        if path in COUNTED:
            values = [len(value) if isinstance(value, list) else value for value in values]
            if values[0] != values[1]:
                yield f"number of {path}", *values
            continue
        left, right = (dict(_leaves(value, path)) for value in values)
        for leaf in sorted(left.keys() | right.keys()):
            if left.get(leaf, _ABSENT) != right.get(leaf, _ABSENT):
                yield leaf, left.get(leaf), right.get(leaf)


def differences(a, b):
    """[(field, value in manifest a, value in manifest b)] of what forbids a comparison."""
    return list(_differences(a, b, (*MUST_AGREE, *COUNTED)))


def remarks(a, b):
    """The same of what should be known when the comparison is read."""
    return list(_differences(a, b, SHOULD_AGREE))


def unknown(a, b):
    """Fields that no run, or only one, tells: whether they agree is not known."""
    found = []
    for path in (*MUST_AGREE, *COUNTED):
        values = [_at(manifest, path) for manifest in (a, b)]
        leaves = [dict(_leaves(value, path)) if value is not _ABSENT else {path: None}
                  for value in values]
        found += [leaf for leaf in sorted(leaves[0].keys() | leaves[1].keys())
                  if leaves[0].get(leaf) is None and leaves[1].get(leaf) is None
                  or _ABSENT in values and leaf == path]
    return found


def text(value):
    return "unknown" if value is None else str(value)
