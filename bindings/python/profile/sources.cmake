hakmem_hook_sources(cold asker.c json.c profile.c stack.c)
