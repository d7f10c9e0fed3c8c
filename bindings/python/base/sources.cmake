hakmem_hook_sources(every cold.c)
hakmem_hook_sources(lines map.c)
hakmem_hook_sources(cold await.c cpython.c options.c out.c process.c provider.c)
