hakmem_hook_sources(every cold.c)
hakmem_hook_sources(lines map.c)
hakmem_hook_sources(cold await.c cpython.c json.c options.c process.c provider.c)
