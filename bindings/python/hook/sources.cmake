hakmem_hook_sources(every hook.c mapped.c say.c window.c)
hakmem_hook_sources(cold copy.c deliver.c install.c live.c main_thread.c past.c report.c requests.c signals.c start.c text.c
    wrap.c)
