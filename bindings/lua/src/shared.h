/* States that are made with the lua_Alloc and ud of another state, as a module for threads does with those of
 * the running state. All of them have one hkl_state and one context. A local context serves one thread at a
 * time: a state that another thread makes in it is refused. A shared context serves all threads, and there
 * nothing of the hkl_state changes while its functions run.
 *
 * Who installs another lua_Alloc does so in the states that are known: a state beside goes on with the one
 * that it was made with. So every lua_Alloc of this binding works with the hkl_state of any time, which keeps
 * what one of them may look at: the labels, the profile, and the records by line of one that counts. */
#ifndef HKL_SHARED_H
#define HKL_SHARED_H

#include "state.h"

/* The block with which lua_newstate begins has at least this size on every runtime, and few others have. */
enum { HKL_STATE_LEAST = LUA_VERSION_NUM >= 503 ? 1024 : 512 };

/* Says so once, on standard error, and returns true if another thread than that of st's state asks for the
 * first block of a new state. Notes a state that is made on st's own thread. */
bool hkl_strange_now(hkl_state *st, size_t nsize, hak_site caller);
/* Before each new block of a local context: whether it must be refused. */
static inline bool hkl_is_strange(hkl_state *st, size_t nsize, hak_site caller)
{
    return __builtin_expect(nsize >= HKL_STATE_LEAST, 0) && hkl_strange_now(st, nsize, caller);
}

/* Switches the labels: those that were on once stay for the other states. -1 = no memory. */
int hkl_switch_labels(hkl_state *st, bool on);
/* Whether another state was ever made with st's lua_Alloc. */
bool hkl_has_others(const hkl_state *st);
/* Whether such states may still have blocks, or ask for some. Only where nothing of the first one is left but
 * st and its labels. */
bool hkl_others_live(const hkl_state *st);
/* Whether L is of the state that came first, and that is there. */
bool hkl_is_first(const hkl_state *st, lua_State *L);

/* The lua_Alloc of a shared context without labels. */
void *hkl_shared_alloc(void *ud, void *ptr, size_t osize, size_t nsize);
/* What its counterpart with labels has in common with it. */
void *hkl_shared_free(hkl_state *st, void *ptr, size_t osize);
void *hkl_shared_new(hkl_state *st, size_t nsize, hak_label label, hak_site site, hak_site caller);
void *hkl_shared_resize(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site);

/* The label of the running hakmem.label: of a shared context, on this thread. 0 = none. */
hak_label hkl_scope(const hkl_state *st);
typedef struct hkl_scope_of {
    const hkl_state *st;
    hak_label label;
} hkl_scope_of;
/* Sets it, and returns what hkl_scope_end needs. */
hkl_scope_of hkl_scope_begin(hkl_state *st, hak_label label);
void hkl_scope_end(hkl_state *st, hkl_scope_of before);

#endif
