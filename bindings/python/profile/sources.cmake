hakmem_hook_sources(cold asker.c few.c json.c profile.c import.c known.c stack.c task.c)
