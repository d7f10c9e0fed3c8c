"""Vectors as small objects with operators: numeric code that allocates all the time."""

import sys

scale = float(sys.argv[1])


class Vector:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, o):
        return Vector(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o):
        return Vector(self.x - o.x, self.y - o.y, self.z - o.z)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k, self.z * k)

    def dot(self, o):
        return self.x * o.x + self.y * o.y + self.z * o.z


spheres = [(Vector(i - 2, (i * 7 % 5) - 2, 5 + i), 1.0 + i / 10) for i in range(5)]
hits = 0
size = max(4, int(210 * scale**0.5))
for y in range(size):
    for x in range(size):
        ray = Vector(x / size - 0.5, y / size - 0.5, 1.0)
        ray = ray * (1 / ray.dot(ray) ** 0.5)
        for centre, radius in spheres:
            b = ray.dot(centre)
            if b * b - centre.dot(centre) + radius * radius > 0:
                near = ray * b - centre
                hits += 1 + int((near + ray * 2).dot(ray))
print(hits)
