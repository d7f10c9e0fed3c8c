#include "base/await.h"

#include "base/cold.h"
#include "base/cpython.h"

bool hkp_awaited;
static hkp_cold_fn first;

static void await(bool awaited)
{
    const hkp_provider *provider = hkp_provider_current();
    hkp_awaited = awaited;
    if (provider->await) provider->await(awaited);
}

void hkp_await(int (*first_call)(void))
{
    first.call = first_call;
    await(true);
}

void hkp_await_look(void)
{
    const hkp_python *python = hkp_python_find();
    if (!python || !python->is_initialized()) return;
    /* -1: the queue is full; the next look tries again. */
    if (python->add_pending_call(hkp_cold_call, &first) == 0) await(false);
}
