/* hakmem, policies: the numbers of hakmem/tuning.h and hints by name, as one object that does not change.
 *
 * A policy says a mode, single numbers, and what is known of labels and call sites. It is made in C or read from
 * text, and given to contexts and spaces when they are made (hak_options.policy, hak_space_options.policy) or at
 * any time later (hak_ctx_policy_set, hak_space_policy_set):
 *
 *     hak_policy_error error;
 *     hak_policy *policy = hak_policy_parse(NULL, text, strlen(text), &error);
 *     if (!policy) fprintf(stderr, "%u: %s\n", error.line, error.text);
 *     hak_ctx_policy_set(ctx, policy);
 *     hak_policy_unref(policy);             // the context has a reference of its own
 *
 * PRECEDENCE  Each number of a context is the first of these that is given: that of the policy, that of
 *             hak_options.tuning, that of the policy's mode, that of hak_options.mode.
 *
 * TEXT        One statement a line; `#` begins a comment where a statement could begin. Names go last and reach to
 *             the end of the line. Sizes may end in K, M, G or T; `none` is HAK_NONE.
 *
 *     hakmem-policy 1
 *     name web server
 *     mode balanced
 *     retained_bytes 64M
 *     expected_bytes 390M
 *     room 100 label buffer
 *     room 50 site src/json.c:120
 *
 * COST        Read by slow paths alone. A context without policy executes the same instructions as one with.
 *
 * Threads: a policy may be read and referenced by any number of threads at once. Since 0.1. */
#ifndef HAKMEM_POLICY_H
#define HAKMEM_POLICY_H

#include <hakmem/tuning.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HAK_POLICY_NAME_MOST = 63,  /* bytes of the name of a policy or label */
    HAK_HINT_NAME_MOST = 191,   /* ... of a site */
    HAK_HINTS_MOST = 1024,      /* of a policy */
    HAK_HINT_ROOM_MOST = 100,   /* percent */
    HAK_POLICY_MODE_NONE = -1   /* the policy leaves the mode as it is */
};

/* What is known of the blocks of a label or of a call site. A site's hint goes before its label's. */
typedef struct hak_hint {
    const char *label; /* the name of a label, or NULL */
    const char *site;  /* the name of a site, as given to hak_site_define, or NULL: one of the two */
    unsigned room;     /* percent of what is asked for that a block gets in addition when it moves because it grows,
                          up to 32 KiB in all. 1 to HAK_HINT_ROOM_MOST. For blocks that grow in steps: each step that
                          fits saves a copy */
} hak_hint;

typedef struct hak_policy_options {
    size_t size;              /* sizeof(hak_policy_options), by HAK_POLICY_OPTIONS_INIT */
    const char *name;         /* shown in reports; copied. NULL = "" */
    int mode;                 /* a hak_mode, or HAK_POLICY_MODE_NONE, the default */
    const hak_tuning *tuning; /* the numbers that it gives; 0 = not that one. NULL = none */
    const hak_hint *hints;    /* copied, each label and site once */
    size_t hint_count;        /* at most HAK_HINTS_MOST */
} hak_policy_options;
#define HAK_POLICY_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(hak_policy_options), NULL, HAK_POLICY_MODE_NONE, NULL, NULL, 0                                \
    }

/* What is wrong with the options, in one line; NULL = nothing. Cost: constant, and a step for each byte of
 * the hints' names. [any thread] */
HAK_API const char *hak_policy_options_error(const hak_policy_options *options);
/* A policy with one reference. os: where its pages come from, and go in the end; copied; NULL = the operating
 * system. NULL = the options or the table are broken, or no memory. Cost: a comparison for each
 * two hints, and one call for the pages; with os->commit two. [any thread] */
HAK_API hak_policy *hak_policy_new(const hak_os *os, const hak_policy_options *options);
/* The policy of a mode, which is built in: references of it are not counted. NULL = no such mode. Fast.
 * [any thread] */
HAK_API const hak_policy *hak_policy_of_mode(hak_mode mode);
/* The mode of this name ("balanced"...); -1 = none. hak_mode_name: NULL = no such mode. Cost: constant. [any
 * thread] */
HAK_API int hak_mode_by_name(const char *name);
HAK_API const char *hak_mode_name(hak_mode mode);
/* One reference more, or less: with the last one its pages go back. NULL is fine. Fast; the last one takes a
 * call for the pages. [any thread] */
HAK_API hak_policy *hak_policy_ref(const hak_policy *policy);
HAK_API void hak_policy_unref(const hak_policy *policy);

/* ---- Reading ------------------------------------------------------------------------------------- */

/* Never NULL; valid as long as the policy is. Fast. [any thread] */
HAK_API const char *hak_policy_name(const hak_policy *policy);
/* A hak_mode, or HAK_POLICY_MODE_NONE. Fast. [any thread] */
HAK_API int hak_policy_mode(const hak_policy *policy);
/* The numbers that it gives, 0 for others; tuning->size is set by the caller. 0 = ok, -1 = the size is none.
 * Cost: constant. [any thread] */
HAK_API int hak_policy_tuning(const hak_policy *policy, hak_tuning *tuning);
/* How many hints it has; fills in up to `count`. Names are valid as long as the policy is. Cost: a step
 * for each. [any thread] */
HAK_API size_t hak_policy_hints(const hak_policy *policy, hak_hint *out, size_t count);

/* ---- Text ---------------------------------------------------------------------------------------- */

typedef struct hak_policy_error {
    unsigned line;  /* from 1; 0 = no memory */
    char text[120]; /* what is wrong there */
} hak_policy_error;
/* The policy that the text of n bytes describes. NULL = *error (may be NULL) says why: another version,
 * unknown or repeated words, values out of range. os as for hak_policy_new. Cost: some steps for each byte,
 * and that of hak_policy_new. [any thread] */
HAK_API hak_policy *hak_policy_parse(const hak_os *os, const char *text, size_t n, hak_policy_error *error);
/* The text of a policy, of `room` bytes at most, its end included; returns the bytes that all of it has
 * without the end. hak_policy_parse of it is an equal policy. out may be NULL if room is 0. Cost: some steps
 * for each byte. [any thread] */
HAK_API size_t hak_policy_print(const hak_policy *policy, char *out, size_t room);
/* A statement's words without its value, and the values; NULL = not given there. */
typedef void hak_policy_diff_fn(void *user, const char *what, const char *from, const char *to);
/* What differs, one call of fn for each statement. Returns how many. fn may be NULL. Cost: a comparison for
 * each hint of the one with each of the other. [any thread] */
HAK_API size_t hak_policy_diff(const hak_policy *from, const hak_policy *to, hak_policy_diff_fn *fn, void *user);

/* ---- Policies of contexts and spaces ------------------------------------------------------------- */

/* The context goes by this policy from now on, NULL: by its options again. It takes a reference. If it has a space of
 * its own, so does that. packed_bytes and first_offset are read when a context is made: those of a policy set later
 * are not heeded. Magazines and caches shrink at once; a shared context's other threads follow at their next slow
 * path. 0 = ok; -1 = no memory, nothing changed. Cost: a step for each size class and hint; what caches give up. */
HAK_API int hak_ctx_policy_set(hak_ctx *ctx, const hak_policy *policy);
/* With a reference for the caller; NULL = none. Cost: constant. */
HAK_API hak_policy *hak_ctx_policy(const hak_ctx *ctx);
/* The numbers that the context goes by now, those of its space included; tuning->size is set by the caller.
 * 0 = ok, -1 = the size is none. Cost: constant. */
HAK_API int hak_ctx_tuning(const hak_ctx *ctx, hak_tuning *tuning);
/* The same for the numbers of a space. Pages above a smaller limit go back with the next free of a unit, or
 * tick. Cost: constant. [any thread] */
HAK_API void hak_space_policy_set(hak_space *space, const hak_policy *policy);
HAK_API hak_policy *hak_space_policy(hak_space *space);

/* The call site has this name, by which policies know it; the last name counts. A site that no hint of the context's
 * policy names takes 16 to 32 bytes of metadata all the same, for later ones; a context has room for 65536. 0 = ok;
 * -1 = no memory or no room, or the name is NULL, empty or too long, or the site 0. Cost: a step for each hint. */
HAK_API int hak_site_define(hak_ctx *ctx, hak_site site, const char *name);

#ifdef __cplusplus
}
#endif
#endif
