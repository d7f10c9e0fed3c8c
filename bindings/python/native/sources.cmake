hakmem_hook_sources(native native.c)
hakmem_hook_sources(cold constructor.c fixed.c functions.c kinds.c learn.c learn_calls.c parts.c subsystem.c)
