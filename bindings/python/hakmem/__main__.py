"""python -m hakmem."""

import sys


def main():
    if sys.argv[1:2] == ["run"]:
        from hakmem import _run

        _run.main(sys.argv[2:])
    from hakmem import _cli

    _cli.main()


def console():
    """The command hakmem that pip installs."""
    from hakmem import _pass

    if _pass.takes(sys.argv[1:]):
        _pass.start(sys.argv[1:])
    main()


if __name__ == "__main__":
    main()
