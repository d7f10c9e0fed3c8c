"""python -m hakmem."""

import sys


def main():
    if sys.argv[1:2] == ["run"]:
        from hakmem import _run

        _run.main(sys.argv[2:])
    from hakmem import _cli

    _cli.main()


if __name__ == "__main__":
    main()
