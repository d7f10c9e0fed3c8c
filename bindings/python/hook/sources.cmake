hakmem_hook_sources(every hook.c window.c)
hakmem_hook_sources(cold deliver.c install.c live.c main_thread.c report.c signals.c text.c wrap.c)
