# The core's tests in C++ where an emulator runs them: by qemu-user, for another processor (install_aarch64_core).

# It takes ten times as long: so the long loops run in part, as they do with sanitizers.
set(core_timeout 2400)
set(inside_timeout 600)
add_compile_definitions(TEST_EMULATED)

# What qemu-user does not do. It grants MADV_POPULATE_WRITE, and limits of addresses, and does nothing about them; it
# refuses mincore where pages may not be read; and it counts its own memory as that of the program.
set(emulated_os "~default populate makes*")
set(emulated_reserve "~a limit *")
set(emulated_small "~small heaps: pages touched for a live byte")
set(emulated_space "~a process with little address space")
set(emulated_trim "~trim gives back bitmaps*")
