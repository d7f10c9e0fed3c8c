#define _GNU_SOURCE
#include "subsystem.h"

#include "map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static const char *const names[] = {
#define NAME(name, text) text,
    HK_PY_SUBSYSTEMS(NAME)
#undef NAME
};

const char *hk_py_subsystem_name(hk_py_subsystem subsystem)
{
    return names[subsystem];
}

typedef struct rule {
    hk_py_subsystem subsystem;
    const char *words; /* separated by spaces */
} rule;

/* Whole names: they make a block for whoever calls them. */
static const char helpers[] =
    "PyMem_Malloc PyMem_Calloc PyMem_Realloc PyMem_RawMalloc PyMem_RawCalloc PyMem_RawRealloc"
    " PyObject_Malloc PyObject_Calloc PyObject_Realloc _PyObject_Malloc _PyObject_Calloc _PyObject_Realloc"
    " _PyMem_RawMalloc _PyMem_RawCalloc _PyMem_RawRealloc _PyMem_Strdup _PyMem_RawStrdup _PyMem_RawWcsdup"
    " _PyObject_GC_New _PyObject_GC_NewVar _PyObject_GC_Malloc _PyObject_GC_Calloc _PyObject_GC_Resize"
    " PyUnstable_Object_GC_NewWithExtraData gc_alloc _PyObject_MallocWithType _PyObject_New _PyObject_NewVar"
    " PyType_GenericAlloc PyType_GenericNew _PyType_AllocNoTrack _PyType_NewManagedObject"
    " PyUnicode_New _PyUnicode_New PyBytes_FromStringAndSize _PyBytes_FromSize PyObject_Init "
    "PyObject_InitVar ";

/* These go before source files: helpers, and beginnings of functions in the files of types that make what is
 * no type. */
static const rule first[] = {
    {HK_PY_HELPER, helpers},
    {HK_PY_INSTANCE,
     "object_new object_ type_call _PyObject_InitInlineValues init_inline_values _PyObject_StoreInstance "
     "_PyObject_InitState"},
};

/* Beginnings of names; the longest that fits counts. */
static const rule prefixes[] = {
    {HK_PY_UNICODE, "PyUnicode _PyUnicode PyObject_Str PyObject_Repr PyObject_ASCII PyObject_Format unicode "
                    "ucs1lib_ ucs2lib_ ucs4lib_ asciilib_ resize_compact SubString_ "
                    "formatter fieldname stringlib_ intern_ _Py_GetConstant"},
    {HK_PY_BYTES, "PyBytes _PyBytes PyObject_Bytes bytes PyByteArray _PyByteArray bytearray _Py_bytes "
                  "_Py_strhex stringlib_bytes "
                  "striter"},
    {HK_PY_INT, "PyLong _PyLong PyNumber_Long long_ int_ PyBool bool_ k_mul k_lopsided x_add x_sub x_mul "
                "x_div l_mod l_div "
                "_Py_convert_int"},
    {HK_PY_FLOAT, "PyFloat _PyFloat PyNumber_Float float PyComplex _PyComplex complex_ PyOS_double Balloc "
                  "_Py_dg_ d2b mult "
                  "pow5mult sd2b diff lshift PyOS_string_to_double _PyDtoa"},
    {HK_PY_DICT,
     "PyDict _PyDict PyObject_GenericSetAttr _PyObject_GenericSetAttr PyObject_GenericGetDict dict new_dict "
     "new_keys_object clone_combined insertdict insert_to_emptydict "
     "_PyObject_InitializeDict _PyObjectDict _PyObject_MaterializeManagedDict odict PyODict _odict "
     "make_dict_from make_keys_shared copy_values new_values"},
    {HK_PY_LIST, "PyList _PyList PySequence_List PySequence_Fast PyMapping_ list merge_"},
    {HK_PY_TUPLE, "PyTuple _PyTuple PySequence_Tuple tuple PyStructSequence structseq"},
    {HK_PY_SET, "PySet _PySet PyFrozenSet set_ frozenset make_new_set make_new_frozenset setiter"},
    {HK_PY_TYPE,
     "PyType _PyType type_ mro_ PyDescr descr wrapper PyWrapper mappingproxy PyDictProxy slot_ super_ "
     "_PySuper getset_ Py_GenericAlias ga_ union_ _Py_union _Py_make_ typevar paramspec typealias _abc "
     "property_ _PyStructSequence add_subclass add_methods add_members add_getset PyStaticMethod_"},
    {HK_PY_FUNCTION,
     "PyFunction _PyFunction func_ function_ PyCFunction PyCMethod meth_ PyMethod_ method_ "
     "PyClassMethod PyInstanceMethod instancemethod cm_ sm_ PyCell cell_ classmethod_ staticmethod_"},
    {HK_PY_CODE, "PyCode_ _PyCode_ code_ PyUnstable_Code intern_constants lineiter_ init_code new_code_arena "
                 "_Py_Specialize _PyStaticCode"},
    {HK_PY_FRAME, "PyFrame _PyFrame frame_ push_chunk allocate_chunk _PyThreadState_PushFrame "
                  "_PyThreadState_BumpFrame take_ownership frame_setlineno"},
    {HK_PY_GENERATOR, "PyGen _PyGen gen_ coro_ PyCoro PyAsyncGen _PyAsyncGen async_gen PyAnextAwaitable "
                      "anextawaitable make_gen _Py_MakeCoro agen"},
    {HK_PY_ITERATOR,
     "PySeqIter PyCallIter calliter iter_ enum_ enumerate reversed_ range_ rangeiter longrange "
     "make_range PyRange map_ zip_ filter_ slice_ PySlice _PySlice _PyBuildSlice"},
    {HK_PY_EXCEPTION,
     "PyErr _PyErr PyException _PyException BaseException OSError oserror ImportError SyntaxError "
     "StopIteration SystemExit KeyError AttributeError NameError MemoryError UnicodeDecodeError "
     "UnicodeEncodeError UnicodeTranslateError PyUnicodeDecodeError PyUnicodeEncodeError "
     "PyTraceBack _PyTraceBack tb_ warn _Py_CalculateSuggestions _PyWarnings get_memory_error"},
    {HK_PY_MODULE, "PyModule _PyModule module_ new_module PyInit PyCapsule capsule_ _PyNamespace namespace_"},
    {HK_PY_IMPORT,
     "PyImport _PyImport import_ _imp PyMarshal _PyMarshal r_object r_string r_long r_float r_byte "
     "w_reserve w_object marshal _extensions_cache"},
    {HK_PY_PARSER,
     "_PyPegen _PyParser PyParser _PyTokenizer PyTokenizer _PyLexer tok_ _loop0 _loop1 _gather _tmp_ "
     "_PyAST PyAST ast_ ast2obj obj2ast _PyArena PyArena block_new block_alloc _Py_asdl fstring_ "
     "PyOS_Readline _Py_SourceAsString"},
    {HK_PY_COMPILER, "compiler_ _PyCompile _PyAST_Compile _PyAST_Optimize _PyCfg cfg_ _PyAssemble assemble "
                     "PySymtable _PySymtable symtable_ ste_ addop _PyInstructionSequence inst_seq _PyFuture "
                     "_Py_Mangle optimize_ Py_CompileString Py_SymtableString merge_const_one"},
    {HK_PY_REGEX, "_sre sre_ pattern_ match_ scanner_ data_stack_grow state_init expand_template"},
    {HK_PY_CODECS, "PyCodec _PyCodec _codecs codec charmap _multibytecodec"},
    {HK_PY_IO,
     "_io _PyIO buffered _buffered fileio iobase stringio _stringio bytesio textiowrapper _textio PyFile "
     "_PyFile _PyIncrementalNewline incrementalnewline rawio _bufferedreader _bufferedwriter stdprinter"},
    {HK_PY_OS, "os_ posix ScandirIterator DirEntry path_ iov_ parse_arglist parse_envlist convertenviron "
               "PyOS_FSPath PyOS_AfterFork _Py_abspath _Py_join_relfile"},
    {HK_PY_BUFFER, "PyMemoryView _PyMemoryView _PyManagedBuffer memory_ memoryview mbuf_ PyBuffer _PyBuffer "
                   "buffer_to_ PyObject_CopyData slot_bf_getbuffer PyPickleBuffer picklebuf_"},
    {HK_PY_WEAKREF, "PyWeakref _PyWeakref weakref proxy_ new_weakref allocate_weakref get_or_create_weakref"},
    {HK_PY_CONTEXT, "PyContext _PyContext context contextvar token_ _PyHamt hamt _contextvars"},
    {HK_PY_THREAD, "PyThread_ _PyThread_ thread lock_ rlock local_ newlockobject do_start_ PyThreadHandle "
                   "_PyParkingLot _PyMutex _PySemaphore"},
    {HK_PY_GC, "_PyGC PyGC gc_ PyObject_GC_Track _PyObjectStack"},
    {HK_PY_INTERPRETER,
     "PyInterpreter _PyInterpreter PyThreadState _PyThreadState new_threadstate PyConfig _PyConfig "
     "config_ PyPreConfig preconfig _PyPathConfig pathconfig PyWideStringList _PyWideStringList "
     "_PyRuntime _PyArgv Py_Initialize init_ pyinit PySys _PySys sys_ Py_DecodeLocale "
     "_Py_DecodeLocale Py_EncodeLocale _Py_EncodeLocale _Py_DecodeUTF8 _Py_EncodeUTF8 "
     "decode_current_locale encode_current_locale decode_locale encode_locale getpath "
     "_PyAtExit atexit_ PyUnstable_AtExit _PyXI _PyCrossInterpreterData _xidregistry PyGILState "
     "_Py_qsbr _register_builtins _PyUnicode_InitEncodings _PyMonitoring"},
    {HK_PY_ITERTOOLS,
     "itertools product_ combinations permutations chain_ groupby _grouper tee islice cycle_ "
     "accumulate count_ repeat_ starmap takewhile dropwhile filterfalse compress_ ziplongest cwr_ "
     "pairwise batched"},
    {HK_PY_COLLECTIONS, "deque _deque defdict _collections tuplegetter"},
    {HK_PY_FUNCTOOLS,
     "partial_ lru_cache bounded_lru infinite_lru uncached_lru keyobject functools _functools"},
    {HK_PY_OPERATOR, "itemgetter attrgetter methodcaller _operator"},
    {HK_PY_TIME, "time_ _PyTime PyTime datetime"},
};

/* Source files, without `.c`. They go before these names: a static function may be called `pad` or `replace`.
 */
static const rule files[] = {
    {HK_PY_UNICODE, "unicodeobject unicodectype unicode_format unicode_formatter formatter_unicode _string"},
    {HK_PY_BYTES, "bytesobject bytearrayobject bytes_methods pystrhex"},
    {HK_PY_INT, "longobject boolobject"},
    {HK_PY_FLOAT, "floatobject complexobject dtoa pystrtod"},
    {HK_PY_DICT, "dictobject odictobject"},
    {HK_PY_LIST, "listobject"},
    {HK_PY_TUPLE, "tupleobject structseq"},
    {HK_PY_SET, "setobject"},
    {HK_PY_TYPE,
     "typeobject descrobject unionobject genericaliasobject typevarobject interpolationobject _abc"},
    {HK_PY_FUNCTION, "funcobject methodobject classobject cellobject"},
    {HK_PY_CODE, "codeobject specialize"},
    {HK_PY_FRAME, "frameobject frame"},
    {HK_PY_GENERATOR, "genobject"},
    {HK_PY_ITERATOR, "iterobject enumobject rangeobject sliceobject"},
    {HK_PY_EXCEPTION, "exceptions errors traceback _warnings suggestions"},
    {HK_PY_MODULE, "moduleobject capsule namespaceobject modsupport"},
    {HK_PY_IMPORT, "import marshal frozen importdl dynload_shlib"},
    {HK_PY_PARSER,
     "parser pegen pegen_errors action_helpers string_parser tokenizer lexer peg_api Python-ast asdl "
     "pyarena Python-tokenize myreadline file_tokenizer readline_tokenizer string_tokenizer "
     "utf8_tokenizer"},
    {HK_PY_COMPILER,
     "compile symtable flowgraph assemble ast_opt ast ast_unparse future instruction_sequence codegen"},
    {HK_PY_REGEX, "_sre sre"},
    {HK_PY_CODECS, "codecs _codecsmodule"},
    {HK_PY_IO, "_iomodule bufferedio fileio iobase textio stringio bytesio fileobject"},
    {HK_PY_OS, "posixmodule pwdmodule"},
    {HK_PY_BUFFER, "memoryobject picklebufobject"},
    {HK_PY_WEAKREF, "weakrefobject _weakref"},
    {HK_PY_CONTEXT, "context hamt _contextvarsmodule"},
    {HK_PY_THREAD, "thread _threadmodule parking_lot lock"},
    {HK_PY_GC, "gcmodule gc object_stack"},
    {HK_PY_INTERPRETER,
     "pylifecycle pystate initconfig preconfig pathconfig sysmodule fileutils getpath main "
     "bootstrap_hash atexitmodule signalmodule crossinterp qsbr interpreteridobject instrumentation "
     "faulthandler"},
    {HK_PY_ITERTOOLS, "itertoolsmodule"},
    {HK_PY_COLLECTIONS, "_collectionsmodule"},
    {HK_PY_FUNCTOOLS, "_functoolsmodule"},
    {HK_PY_OPERATOR, "_operator"},
    {HK_PY_TIME, "timemodule pytime"},
};

/* Types without a module, and modules. */
static const rule types[] = {
    {HK_PY_UNICODE, "str unicodedata str_iterator str_ascii_iterator EncodingMap fieldnameiterator "
                    "formatteriterator _string"},
    {HK_PY_BYTES, "bytes bytearray bytes_iterator bytearray_iterator"},
    {HK_PY_INT, "int bool"},
    {HK_PY_FLOAT, "float complex math cmath"},
    {HK_PY_DICT,
     "dict dict_keys dict_values dict_items dict_keyiterator dict_valueiterator dict_itemiterator "
     "dict_reversekeyiterator dict_reversevalueiterator dict_reverseitemiterator odict_iterator odict_keys "
     "odict_values odict_items"},
    {HK_PY_LIST, "list list_iterator list_reverseiterator"},
    {HK_PY_TUPLE, "tuple tuple_iterator"},
    {HK_PY_SET, "set frozenset set_iterator"},
    {HK_PY_INSTANCE, "object"},
    {HK_PY_TYPE, "type super property mappingproxy getset_descriptor member_descriptor method_descriptor "
                 "classmethod_descriptor wrapper_descriptor method-wrapper _abc typing _typing "
                 "types.GenericAlias types.UnionType"},
    {HK_PY_FUNCTION, "function builtin_function_or_method builtin_method method instancemethod classmethod "
                     "staticmethod cell"},
    {HK_PY_CODE, "code line_iterator positions_iterator"},
    {HK_PY_FRAME, "frame"},
    {HK_PY_GENERATOR, "generator coroutine coroutine_wrapper async_generator async_generator_asend "
                      "async_generator_athrow async_generator_wrapped_value anext_awaitable"},
    {HK_PY_ITERATOR,
     "iterator callable_iterator enumerate reversed range range_iterator longrange_iterator map filter "
     "zip slice"},
    {HK_PY_EXCEPTION, "traceback BaseException StopIteration StopAsyncIteration GeneratorExit SystemExit "
                      "KeyboardInterrupt BaseExceptionGroup _warnings"},
    {HK_PY_MODULE, "module moduledef PyCapsule types.SimpleNamespace"},
    {HK_PY_IMPORT, "_imp marshal zipimport"},
    {HK_PY_PARSER, "_ast _tokenize"},
    {HK_PY_COMPILER, "_symtable symtable"},
    {HK_PY_REGEX, "_sre re"},
    {HK_PY_CODECS, "_codecs"},
    {HK_PY_IO, "_io stderrprinter"},
    {HK_PY_OS, "posix os pwd"},
    {HK_PY_BUFFER, "memoryview memory_iterator managedbuffer pickle.PickleBuffer"},
    {HK_PY_WEAKREF, "weakref weakproxy weakcallableproxy _weakref"},
    {HK_PY_CONTEXT, "Context ContextVar Token contextvars _contextvars hamt hamt_array_node hamt_bitmap_node "
                    "hamt_collision_node keys_iterator values_iterator items_iterator keys values items"},
    {HK_PY_THREAD, "_thread"},
    {HK_PY_GC, "gc"},
    {HK_PY_INTERPRETER, "sys atexit _signal signal faulthandler InterpreterID _xxsubinterpreters"},
    {HK_PY_ITERTOOLS, "itertools"},
    {HK_PY_COLLECTIONS, "collections _collections"},
    {HK_PY_FUNCTOOLS, "functools _functools"},
    {HK_PY_OPERATOR, "operator _operator"},
    {HK_PY_TIME, "time datetime _datetime"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The words of a table by their first letters, since there are some hundred and thousands of names to look
 * up. Four letters, or three: nearly all names begin with Py or _Py. */
enum { LETTERS = 4, HEADS = 512 };

typedef struct word {
    const char *text;
    uint32_t letters;
    uint16_t next; /* with the same head; 0 = none */
    uint8_t length, subsystem;
} word;

typedef struct table {
    uint16_t heads[HEADS]; /* numbers of words */
} table;

struct hk_py_words {
    table first, functions, files, types;
    size_t count;
    word words[]; /* from 1 on */
};

static uint32_t letters_of(const char *text, size_t length)
{
    uint32_t letters = 0;
    if (length >= LETTERS) memcpy(&letters, text, LETTERS);
    else memcpy(&letters, text, length);
    return letters;
}

static size_t head_of(uint32_t letters)
{
    return (letters * UINT32_C(0x9e3779b1)) >> 23;
}

/* Counts the words, and adds them where there is a table. */
static size_t each_word(const rule *rules, size_t count, hk_py_words *words, table *to)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        for (const char *text = rules[i].words; *text != 0;) {
            size_t length = strcspn(text, " ");
            if (length > 0 && to != NULL) {
                uint32_t letters = letters_of(text, length);
                uint16_t *head = &to->heads[head_of(letters)];
                word new = {text, letters, *head, (uint8_t)length, (uint8_t)rules[i].subsystem};
                words->words[++words->count] = new;
                *head = (uint16_t)words->count;
            }
            sum += length > 0;
            text += length + (text[length] == ' ');
        }
    }
    return sum;
}

static size_t fill(hk_py_words *words)
{
    return each_word(first, COUNT(first), words, words != NULL ? &words->first : NULL) +
           each_word(prefixes, COUNT(prefixes), words, words != NULL ? &words->functions : NULL) +
           each_word(files, COUNT(files), words, words != NULL ? &words->files : NULL) +
           each_word(types, COUNT(types), words, words != NULL ? &words->types : NULL);
}

hk_py_words *hk_py_words_open(void)
{
    hk_py_words *words = hk_py_pages(sizeof *words + (fill(NULL) + 1) * sizeof *words->words);
    if (words != NULL) fill(words);
    return words;
}

void hk_py_words_close(hk_py_words *words)
{
    munmap(words, sizeof *words + (words->count + 1) * sizeof *words->words);
}

/* Most words of one beginning have another end, or are longer. */
static bool begins(const char *name, size_t length, const word *w)
{
    return w->length <= length && name[w->length - 1] == w->text[w->length - 1] &&
           memcmp(name, w->text, w->length) == 0;
}

static hk_py_subsystem search_whole(const hk_py_words *words, const table *in, const char *name,
                                    size_t length)
{
    uint32_t letters = letters_of(name, length);
    for (unsigned i = in->heads[head_of(letters)]; i != 0; i = words->words[i].next) {
        const word *w = &words->words[i];
        if (w->letters == letters && w->length == length && begins(name, length, w))
            return (hk_py_subsystem)w->subsystem;
    }
    return HK_PY_CORE;
}

/* By the longest word with which the name begins; a helper's is the whole name. */
static hk_py_subsystem search_beginning(const hk_py_words *words, const table *in, const char *name)
{
    size_t length = strlen(name), best = 0;
    hk_py_subsystem found = HK_PY_CORE;
    uint32_t letters = letters_of(name, length);
    for (int n = 0; n < 2 && best == 0; n++, letters &= 0xffffff) {
        for (unsigned i = in->heads[head_of(letters)]; i != 0; i = words->words[i].next) {
            const word *w = &words->words[i];
            if (w->letters != letters || w->length <= best || !begins(name, length, w)) continue;
            if (w->subsystem == HK_PY_HELPER && name[w->length] != 0 && name[w->length] != '.') continue;
            best = w->length;
            found = (hk_py_subsystem)w->subsystem;
        }
    }
    return found;
}

hk_py_subsystem hk_py_subsystem_of_file(const hk_py_words *words, const char *file)
{
    return search_whole(words, &words->files, file, strcspn(file, "."));
}

hk_py_subsystem hk_py_subsystem_of(const hk_py_words *words, const char *function, hk_py_subsystem by_file)
{
    hk_py_subsystem before = search_beginning(words, &words->first, function);
    if (before != HK_PY_CORE) return before;
    if (by_file != HK_PY_CORE) return by_file;
    /* Grammar rules are called after what they parse: `import_from_rule`, `list_rule`. */
    size_t length = (size_t)(strchrnul(function, '.') - function);
    if (length > 5 && memcmp(function + length - 5, "_rule", 5) == 0) return HK_PY_PARSER;
    return search_beginning(words, &words->functions, function);
}

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

hk_py_subsystem hk_py_subsystem_of_type(const hk_py_words *words, const char *type)
{
    if (ends_with(type, "Error") || ends_with(type, "Exception") || ends_with(type, "Warning"))
        return HK_PY_EXCEPTION;
    hk_py_subsystem whole = search_whole(words, &words->types, type, strlen(type));
    return whole != HK_PY_CORE ? whole : search_whole(words, &words->types, type, strcspn(type, "."));
}
