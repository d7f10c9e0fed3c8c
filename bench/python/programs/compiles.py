"""Parses, walks and compiles Python source: what linters, formatters and start-up do."""

import ast
import sys
import textwrap

scale = float(sys.argv[1])
source = "\n".join(
    textwrap.dedent(f"""
    class C{i}(Base):
        '''Text {i}.'''
        def method(self, a, b=None, *c, **d):
            for x in range(a + {i}):
                if x % 2 and (b or c):
                    yield [y ** 2 for y in d.values()], {{"k": x, "n": f"{{x}}!"}}
            return lambda z: z + a
    """)
    for i in range(150)
)
total = 0
for _ in range(max(1, int(7 * scale))):
    parsed = ast.parse(source)
    total += sum(1 for _ in ast.walk(parsed)) + len(ast.unparse(parsed))
    total += len(compile(parsed, "source", "exec").co_consts)
print(total)
