hakmem_hook_sources(lines kept.c places.c site.c stack.c frames.c lines.c)
