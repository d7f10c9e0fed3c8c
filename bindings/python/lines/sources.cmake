hakmem_hook_sources(lines places.c site.c stack.c frames.c lines.c)
