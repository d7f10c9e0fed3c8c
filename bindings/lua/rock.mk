# The module hakmem.so alone, for LuaRocks: the rockspec beside it gives the variables. Run in the root of the tree.
sources = $(wildcard core/src/*/*.c bindings/lua/src/*.c bindings/lua/src/*/*.c) \
    $(addprefix bindings/,$(shell cat bindings/lua/borrowed.txt))
folder = build/rock-$(notdir $(LUA_INCDIR))
# The core and the binding have files of the same names.
$(folder)/core/%.o: includes = -Icore/include -Icore/src
$(folder)/bindings/%.o: includes = -Icore/include -Ibindings/lua/include -Ibindings/lua/src -Ibindings/callsite \
    -Ibindings -I$(LUA_INCDIR)
objects = $(sources:%.c=$(folder)/%.o)

$(folder)/hakmem.so: $(objects) bindings/lua/module.map
	$(CC) $(LIBFLAG) -Wl,-z,nodelete -Wl,--version-script=bindings/lua/module.map -o $@ $(objects)

$(folder)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -O3 -DNDEBUG -std=gnu11 -fPIC -fvisibility=hidden -fno-semantic-interposition -MMD -MP $(includes) -c -o $@ $<

install: $(folder)/hakmem.so
	mkdir -p $(LIBDIR)
	cp $(folder)/hakmem.so $(LIBDIR)

.PHONY: install
-include $(objects:.o=.d)
