hakmem_hook_sources(lines places.c site.c frames.c lines.c)
