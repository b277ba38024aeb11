"""One definition an option: what components of a pipeline share stands in the spec.json of one, the others take it."""
import json
import re

KINDS = ("switch", "count", "real")


def option_breaches(texts: dict[str, str]) -> list[str]:
    """`texts`: path -> text. Options "of_inputs" say what a component's own inputs look like, and are its own."""
    defined: dict[tuple[str, str], list[str]] = {}
    breaches = []
    for path, text in sorted(texts.items()):
        if not (match := re.fullmatch(r"src/(\w+)/(\w+)/spec\.json", path)):
            continue
        try:
            options = json.loads(text).get("options", [])
        except ValueError:
            continue  # the program refuses it, with the place
        for option in options:
            name = next((option[kind] for kind in KINDS if kind in option), None)
            if name and not option.get("of_inputs"):
                defined.setdefault((match[1], name), []).append(path)
            if not option.get("like", match[1] + ".").startswith(match[1] + "."):
                breaches.append(f"{path}: option like '{option['like']}': a component of another pipeline")
    return breaches + [
        f"{paths[1]}: option '{name}' is defined in {paths[0]} too; take it from there with \"like\", or give it "
        "another name" for (_, name), paths in sorted(defined.items()) if len(paths) > 1]
