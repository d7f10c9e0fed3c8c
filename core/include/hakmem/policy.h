/* hakmem, policies: the numbers of hakmem/tuning.h and hints by name, as one object that does not change.
 *
 * A policy names a mode, sets single numbers, and gives hints for labels and call sites. A host makes a
 * policy in C or reads it from text. Contexts and spaces get it when they are made (hak_options.policy,
 * hak_space_options.policy) or at any time later (hak_ctx_policy_set, hak_space_policy_set):
 *
 *     hak_policy_error error;
 *     hak_policy *policy = hak_policy_parse(NULL, text, strlen(text), &error);
 *     if (!policy) fprintf(stderr, "%u: %s\n", error.line, error.text);
 *     hak_ctx_policy_set(ctx, policy);
 *     hak_policy_unref(policy);             // the context has a reference of its own
 *
 * PRECEDENCE  A number of a context is taken from the first of these that gives it: the policy,
 *             hak_options.tuning, the policy's mode, hak_options.mode.
 *
 * TEXT        One statement on each line; a line whose first word begins with `#` is a comment. A name is the
 *             last word of its statement and reaches to the end of the line. Sizes may end in K, M, G or T;
 *             `none` is HAK_NONE.
 *
 *     hakmem-policy 1
 *     name web server
 *     mode balanced
 *     retained_bytes 64M
 *     expected_bytes 390M
 *     price 50
 *     undone mode balanced from fast cost 19600 without 5000 windows 3 price 50 fault 812
 *     room 100 label buffer
 *     room 50 site src/json.c:120
 *
 *             `memory cheap`, `memory normal` and `memory dear` are prices of 5, 50 and 1000; `memory 64M` is
 *             a budget. hak_policy_print writes the number of a price.
 *
 * COST        Only slow paths read a policy: the fast paths of a context with a policy execute the same
 *             instructions.
 *
 * STABILITY  Experimental: its numbers are those of hakmem/tuning.h.
 *
 * Threads: a policy may be read and referenced by any number of threads at once. Since 0.1. */
#ifndef HAKMEM_POLICY_H
#define HAKMEM_POLICY_H

#include <hakmem/tuning.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HAK_POLICY_NAME_MOST = 63, /* bytes of the name of a policy or label */
    HAK_HINT_NAME_MOST = 191,  /* ... of a site */
    HAK_HINTS_MOST = 1024,     /* of a policy */
    HAK_HINT_ROOM_MOST = 100,  /* percent */
    HAK_POLICY_MODE_NONE = -1, /* the policy leaves the mode as it is */
    HAK_UNDONE_MOST = 32       /* trials that a policy remembers */
};

/* What a MiB that is held is worth, in millionths of the program's CPU time: 50 says that 200 MiB are worth
 * 1 %. Learners read prices; nothing else does. */
enum {
    HAK_PRICE_CHEAP = 5,
    HAK_PRICE_NORMAL = 50,
    HAK_PRICE_DEAR = 1000, /* few heaps are worth more than HAK_MODE_LEAN */
    HAK_PRICE_MOST = 1000000
};

/* A step of a learner that did not pay, because a trial of the step was undone or the step back was kept, and
 * what the learner saw: the next run need not try the step. */
typedef struct hak_undone {
    const char *number;     /* "mode" or "retained_bytes" */
    size_t to, from;        /* what was tried, and what was in force; of "mode" a hak_mode */
    unsigned cost, without; /* millionths of the time that memory cost with `to`, and with `from` */
    unsigned windows;       /* in which `to` was in force; at least 1 */
    unsigned price;         /* of a MiB, in millionths */
    unsigned fault_ns;      /* what a page fault cost on that machine */
} hak_undone;

/* What is known of the blocks of a label or of a call site. A hint for a site takes precedence over one for a
 * label. */
typedef struct hak_hint {
    const char *label; /* the name of a label, or NULL */
    const char *site;  /* the name of a site, as given to hak_site_define, or NULL: one of the two */
    unsigned room;     /* when a block grows and has to move, the new block is larger than requested by this
                          many percent, up to 32 KiB in all. 1 to HAK_HINT_ROOM_MOST. For blocks that grow in
                          steps: each step that fits saves a copy */
} hak_hint;

typedef struct hak_policy_options {
    size_t size;              /* sizeof(hak_policy_options), by HAK_POLICY_OPTIONS_INIT */
    const char *name;         /* shown in reports; copied. NULL = "" */
    int mode;                 /* a hak_mode, or HAK_POLICY_MODE_NONE, the default */
    const hak_tuning *tuning; /* the numbers that the policy sets; 0 = not set. NULL = none */
    const hak_hint *hints;    /* copied; a label or site may appear once */
    size_t hint_count;        /* at most HAK_HINTS_MOST */
    unsigned price;           /* of a MiB that is held: 1 to HAK_PRICE_MOST; 0 = none */
    size_t budget;            /* bytes that may be spent for speed: 1 MiB to 1 TiB; 0 = none */
    const hak_undone *undone; /* copied; one for each number, to and from */
    size_t undone_count;      /* at most HAK_UNDONE_MOST */
} hak_policy_options;
#define HAK_POLICY_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(hak_policy_options), NULL, HAK_POLICY_MODE_NONE, NULL, NULL, 0, 0, 0, NULL, 0                 \
    }

/* Returns what is wrong with the options, in one line; NULL = nothing. Cost: constant, and some steps for
 * each hint and each byte of its name. [any thread] */
HAK_API const char *hak_policy_options_error(const hak_policy_options *options);
/* Makes a policy with one reference, which the caller owns. os: the source of its pages; copied; NULL = the
 * operating system. Returns NULL if the options or the table are broken, or there is no memory. Cost: a
 * comparison for each pair of hints, and one call for the pages; two with os->commit. [any thread] */
HAK_API hak_policy *hak_policy_new(const hak_os *os, const hak_policy_options *options);
/* Returns the built-in policy of a mode. It lives forever, and its references are not counted. NULL = no such
 * mode. Fast. [any thread] */
HAK_API const hak_policy *hak_policy_of_mode(hak_mode mode);
/* Return the mode of this name ("balanced"...), -1 if there is none or name is NULL; and the name of a mode,
 * NULL if there is no such mode. Cost: constant. [any thread] */
HAK_API int hak_mode_by_name(const char *name);
HAK_API const char *hak_mode_name(hak_mode mode);
/* Add a reference, and drop one; when the last reference is dropped the pages go back. NULL is fine. Fast;
 * the last reference takes a call for the pages. [any thread] */
HAK_API hak_policy *hak_policy_ref(const hak_policy *policy);
HAK_API void hak_policy_unref(const hak_policy *policy);

/* ---- Reading ------------------------------------------------------------------------------------- */

/* Returns the name, never NULL; valid as long as the policy is. Fast. [any thread] */
HAK_API const char *hak_policy_name(const hak_policy *policy);
/* Returns a hak_mode, or HAK_POLICY_MODE_NONE. Fast. [any thread] */
HAK_API int hak_policy_mode(const hak_policy *policy);
/* Fills in the numbers that the policy sets, 0 for all others. The caller sets tuning->size. Returns 0, or -1
 * if tuning->size is not valid. Cost: constant. [any thread] */
HAK_API int hak_policy_tuning(const hak_policy *policy, hak_tuning *tuning);
/* Fills in up to `count` hints and returns how many there are. The names are valid as long as the policy is.
 * Cost: a step for each hint. [any thread] */
HAK_API size_t hak_policy_hints(const hak_policy *policy, hak_hint *out, size_t count);

/* Return the price and the budget of the policy; 0 = none. Fast. [any thread] */
HAK_API unsigned hak_policy_price(const hak_policy *policy);
HAK_API size_t hak_policy_budget(const hak_policy *policy);
/* Fills in up to `count` undone trials and returns how many there are. The names of numbers are constant.
 * Cost: a step for each. [any thread] */
HAK_API size_t hak_policy_undone(const hak_policy *policy, hak_undone *out, size_t count);

/* ---- Text ---------------------------------------------------------------------------------------- */

typedef struct hak_policy_error {
    unsigned line;  /* from 1; 0 = no memory */
    char text[120]; /* what is wrong there */
} hak_policy_error;
/* Makes the policy that the text of n bytes describes. On an error returns NULL, and *error says why (error
 * may be NULL): another version, unknown or repeated words, values out of range. os: as for hak_policy_new.
 * Cost: some steps for each byte, and that of hak_policy_new. [any thread] */
HAK_API hak_policy *hak_policy_parse(const hak_os *os, const char *text, size_t n, hak_policy_error *error);
/* Writes the policy as text, at most `room` bytes with the terminating 0, and returns the length of the whole
 * text without that 0. hak_policy_parse makes an equal policy of it. out may be NULL if room is 0. Cost: some
 * steps for each byte. [any thread] */
HAK_API size_t hak_policy_print(const hak_policy *policy, char *out, size_t room);
/* what: a statement without its value. from, to: its value in each policy; NULL = it is not there. */
typedef void hak_policy_diff_fn(void *user, const char *what, const char *from, const char *to);
/* Calls fn for each statement that differs, and returns how many do. fn may be NULL; a policy that is NULL
 * has no statements. Cost: a comparison of each hint of one policy with each of the other. [any thread] */
HAK_API size_t hak_policy_diff(const hak_policy *from, const hak_policy *to, hak_policy_diff_fn *fn,
                               void *user);

/* ---- Policies of contexts and spaces ------------------------------------------------------------- */

/* Makes the context follow this policy from now on; NULL = its options again. The context takes a reference.
 * If the context has a space of its own, the space follows the policy, too. first_offset and slab_sizes are
 * read when a context is made: a policy that is set later changes them neither for the context nor for
 * threads that come to a shared context later. Magazines and caches shrink at once. If packed_bytes falls
 * below what is packed, size classes use slabs from then on; a class that took a slab keeps to slabs when
 * packed_bytes rises again. A context that was made to pack nothing never packs. The other threads of a
 * shared context follow at their next slow path. Returns 0; -1 if there is no memory, and then nothing
 * changed. Cost: a step for each size class and hint, and for what caches give back. */
HAK_API int hak_ctx_policy_set(hak_ctx *ctx, const hak_policy *policy);
/* Returns the policy of the context; the caller owns a reference. NULL = none. Cost: constant. */
HAK_API hak_policy *hak_ctx_policy(const hak_ctx *ctx);
/* Fills in the numbers that are in force for the context now, those of its space included. The caller sets
 * tuning->size. Returns 0, or -1 if tuning->size is not valid. Cost: constant. */
HAK_API int hak_ctx_tuning(const hak_ctx *ctx, hak_tuning *tuning);
/* Set and return the policy of a space, as above. If a limit falls, the pages above it go back with the next
 * free of a unit or the next tick. Cost: constant. [any thread] */
HAK_API void hak_space_policy_set(hak_space *space, const hak_policy *policy);
HAK_API hak_policy *hak_space_policy(hak_space *space);

/* Names a call site, so that policies can refer to it; a second name replaces the first. Each site takes 22
 * to 43 bytes of metadata, even if no hint of the current policy names it: a later policy may. A context has
 * room for 49152 sites. Returns 0, or -1 if there is no memory or no room, if the name is NULL, empty or too
 * long, or has a blank at an end or a control character, or if the site is 0. Cost: a step for each hint. */
HAK_API int hak_site_define(hak_ctx *ctx, hak_site site, const char *name);

#ifdef __cplusplus
}
#endif
#endif
