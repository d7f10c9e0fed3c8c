hakmem_hook_sources(every heap.c libc.c original.c)
hakmem_hook_sources(cold domains.c interpreters.c labels.c resident.c)
