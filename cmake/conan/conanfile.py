"""The Conan recipe of the core. The package has hakmem's own CMake files: find_package(hakmem) is the same as for an
installation."""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

PARTS = "TESTS", "LUA", "PYTHON", "WASM", "PRELOAD", "REPORT", "BENCH"


class Hakmem(ConanFile):
    name = "hakmem"
    license = "MIT"
    description = "A memory allocator for language runtimes: exact accounts, limits, labels"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    languages = ("C",)

    def _root(self):
        return Path(self.recipe_folder).parent.parent

    def set_version(self):
        text = load(self, self._root() / "core/include/hakmem/hakmem.h")
        self.version = ".".join(re.findall(r"^#define HAK_VERSION_[A-Z]+\s+([0-9]+)$", text, re.M))

    def export_sources(self):
        for name in "CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "cmake/*", "core/*", "docs/*", "bindings/cpp/*":
            copy(self, name, self._root(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in PARTS:
            toolchain.cache_variables[f"HAKMEM_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/hakmem"]
