/* The parts of CPython that blocks are booked under, and which one a function belongs to. */
#ifndef HK_PY_SUBSYSTEM_H
#define HK_PY_SUBSYSTEM_H

#define HK_PY_SUBSYSTEMS(X)                                                                                  \
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

#define HK_PY_SUBSYSTEM_ENUM(name, text) HK_PY_##name,
typedef enum hk_py_subsystem {
    HK_PY_SUBSYSTEMS(HK_PY_SUBSYSTEM_ENUM) HK_PY_SUBSYSTEM_COUNT,
    HK_PY_HELPER = HK_PY_SUBSYSTEM_COUNT /* allocates for its caller */
} hk_py_subsystem;
#undef HK_PY_SUBSYSTEM_ENUM

const char *hk_py_subsystem_name(hk_py_subsystem subsystem);

/* The names that are known, for a look at many; NULL = no memory. */
typedef struct hk_py_words hk_py_words;
hk_py_words *hk_py_words_open(void);
void hk_py_words_close(hk_py_words *words);

/* By the source file: `listobject.c`. CORE = says nothing. */
hk_py_subsystem hk_py_subsystem_of_file(const hk_py_words *words, const char *file);

/* By the name of a function of CPython, as the compiler left it (`pad.constprop.0`), and what its source file
 * says (CORE where that is not known). CORE for what is in no table: the interpreter loop, calls, arguments.
 */
hk_py_subsystem hk_py_subsystem_of(const hk_py_words *words, const char *function, hk_py_subsystem by_file);

/* By the name of a type or module: `list_iterator`, `collections.deque`, `_io`. */
hk_py_subsystem hk_py_subsystem_of_type(const hk_py_words *words, const char *type);

#endif
