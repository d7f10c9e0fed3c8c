hakmem_hook_sources(every process.c scope.c)
hakmem_hook_sources(fast hooks_off.c)
hakmem_hook_sources(native hooks_native.c)
hakmem_hook_sources(lines
    hooks_off_profiled.c hooks_native_profiled.c hooks_site_3_10_profiled.c hooks_site_3_11_profiled.c
    hooks_site_3_12_profiled.c hooks_site_3_13_profiled.c hooks_site_3_14_profiled.c)
hakmem_hook_sources(lines reused.c hooks_site_3_10.c hooks_site_3_11.c hooks_site_3_12.c hooks_site_3_13.c
    hooks_site_3_14.c)
hakmem_hook_sources(cold hooks_site.c provider_list.c)
