#include "profile/few.h"

#include "base/map.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
}

static void begin(hkp_few *few)
{
    static bool watched;
    few->names = hkp_pages(HKP_FEW * sizeof *few->names);
    if (!watched) pthread_atfork(NULL, NULL, in_child);
    watched = true;
    if (!few->names) return;
    strcpy(few->names[0], few->others);
    few->count = 1;
}

uint32_t hkp_few_number(hkp_few *few, const char *name)
{
    uint32_t i = 1;
    pthread_mutex_lock(&mutex);
    if (!few->names) begin(few);
    while (i < few->count && strncmp(few->names[i], name, HKP_FEW_BYTES - 1) != 0)
        i++;
    if (i == few->count && few->names && few->count < HKP_FEW)
        memcpy(few->names[few->count++], name, strnlen(name, HKP_FEW_BYTES - 1));
    const uint32_t number = i < few->count ? i : 0;
    pthread_mutex_unlock(&mutex);
    return number;
}

const char *hkp_few_name(const hkp_few *few, uint32_t number)
{
    return few->names ? few->names[number % HKP_FEW] : NULL;
}
