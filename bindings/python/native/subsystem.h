/* The parts of CPython that blocks are booked under, and which one a function belongs to. */
#ifndef HKP_SUBSYSTEM_H
#define HKP_SUBSYSTEM_H

#define HKP_SUBSYSTEMS(X)                                                                                    \
    X(CORE, "core")                                                                                          \
    X(UNICODE, "unicode")                                                                                    \
    X(BYTES, "bytes")                                                                                        \
    X(INT, "int")                                                                                            \
    X(FLOAT, "float")                                                                                        \
    X(DICT, "dict")                                                                                          \
    X(LIST, "list")                                                                                          \
    X(TUPLE, "tuple")                                                                                        \
    X(SET, "set")                                                                                            \
    X(INSTANCE, "instance")                                                                                  \
    X(TYPE, "type")                                                                                          \
    X(FUNCTION, "function")                                                                                  \
    X(CODE, "code")                                                                                          \
    X(FRAME, "frame")                                                                                        \
    X(GENERATOR, "generator")                                                                                \
    X(ITERATOR, "iterator")                                                                                  \
    X(EXCEPTION, "exceptions")                                                                               \
    X(MODULE, "module")                                                                                      \
    X(IMPORT, "import")                                                                                      \
    X(PARSER, "parser")                                                                                      \
    X(COMPILER, "compiler")                                                                                  \
    X(REGEX, "regex")                                                                                        \
    X(CODECS, "codecs")                                                                                      \
    X(IO, "io")                                                                                              \
    X(OS, "os")                                                                                              \
    X(BUFFER, "buffer")                                                                                      \
    X(WEAKREF, "weakref")                                                                                    \
    X(CONTEXT, "context")                                                                                    \
    X(THREAD, "thread")                                                                                      \
    X(GC, "gc")                                                                                              \
    X(INTERPRETER, "interpreter")                                                                            \
    X(ITERTOOLS, "itertools")                                                                                \
    X(COLLECTIONS, "collections")                                                                            \
    X(FUNCTOOLS, "functools")                                                                                \
    X(OPERATOR, "operator")                                                                                  \
    X(TIME, "time")

#define HKP_SUBSYSTEM_ENUM(name, text) HKP_##name,
typedef enum hkp_subsystem {
    HKP_SUBSYSTEMS(HKP_SUBSYSTEM_ENUM) HKP_SUBSYSTEM_COUNT,
    HKP_HELPER = HKP_SUBSYSTEM_COUNT /* allocates for its caller */
} hkp_subsystem;
#undef HKP_SUBSYSTEM_ENUM

/* Of a function, in place of its hkp_subsystem. */
enum { HKP_UNKNOWN = 0xff };

const char *hkp_subsystem_name(hkp_subsystem subsystem);

/* The names that are known, for a look at many; NULL = no memory. */
typedef struct hkp_words hkp_words;
hkp_words *hkp_words_open(void);
void hkp_words_close(hkp_words *words);

/* By the source file: `listobject.c`. CORE = says nothing. */
hkp_subsystem hkp_subsystem_of_file(const hkp_words *words, const char *file);

/* By the name of a function of CPython, as the compiler left it (`pad.constprop.0`), and what its source file
 * says (CORE where that is not known). CORE for what is in no table: the interpreter loop, calls, arguments.
 */
hkp_subsystem hkp_subsystem_of(const hkp_words *words, const char *function, hkp_subsystem by_file);

/* By the name of a type or module: `list_iterator`, `collections.deque`, `_io`. */
hkp_subsystem hkp_subsystem_of_type(const hkp_words *words, const char *type);

#endif
