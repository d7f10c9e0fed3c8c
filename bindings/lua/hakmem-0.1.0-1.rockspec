package = "hakmem"
version = "0.1.0-1"
source = {
   url = "file://hakmem-0.1.0.tar.gz"
}
description = {
   summary = "Exact memory accounts, limits, trimming and profiles for Lua states",
   license = "MIT"
}
supported_platforms = { "linux" }
dependencies = {
   "lua >= 5.1, < 5.6"
}
build = {
   type = "make",
   makefile = "bindings/lua/rock.mk",
   build_target = "",
   build_variables = {
      CC = "$(CC)",
      CFLAGS = "$(CFLAGS)",
      LIBFLAG = "$(LIBFLAG)",
      LUA_INCDIR = "$(LUA_INCDIR)"
   },
   install_variables = {
      CC = "$(CC)",
      CFLAGS = "$(CFLAGS)",
      LIBFLAG = "$(LIBFLAG)",
      LUA_INCDIR = "$(LUA_INCDIR)",
      LIBDIR = "$(LIBDIR)"
   }
}
