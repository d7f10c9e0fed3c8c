#define _GNU_SOURCE
#include "native/subsystem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static const char *const names[] = {
#define NAME(name, text) text,
    HKP_SUBSYSTEMS(NAME)
#undef NAME
};

const char *hkp_subsystem_name(hkp_subsystem subsystem)
{
    return names[subsystem];
}

typedef struct rule {
    hkp_subsystem subsystem;
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
    {HKP_HELPER, helpers},
    {HKP_INSTANCE,
     "object_new object_ type_call _PyObject_InitInlineValues init_inline_values _PyObject_StoreInstance "
     "_PyObject_InitState"},
};

/* Beginnings of names; the longest that fits counts. */
static const rule prefixes[] = {
    {HKP_UNICODE, "PyUnicode _PyUnicode PyObject_Str PyObject_Repr PyObject_ASCII PyObject_Format unicode "
                  "ucs1lib_ ucs2lib_ ucs4lib_ asciilib_ resize_compact SubString_ "
                  "formatter fieldname stringlib_ intern_ _Py_GetConstant "
                  "_PyTemplate template_ templateiter _PyInterpolation interpolation_"},
    {HKP_BYTES, "PyBytes _PyBytes PyObject_Bytes bytes PyByteArray _PyByteArray bytearray _Py_bytes "
                "_Py_strhex stringlib_bytes "
                "striter"},
    {HKP_INT, "PyLong _PyLong PyNumber_Long long_ int_ PyBool bool_ k_mul k_lopsided x_add x_sub x_mul "
              "x_div l_mod l_div "
              "_Py_convert_int"},
    {HKP_FLOAT, "PyFloat _PyFloat PyNumber_Float float PyComplex _PyComplex complex_ PyOS_double Balloc "
                "_Py_dg_ d2b mult "
                "pow5mult sd2b diff lshift PyOS_string_to_double _PyDtoa"},
    {HKP_DICT,
     "PyDict _PyDict PyObject_GenericSetAttr _PyObject_GenericSetAttr PyObject_GenericGetDict dict new_dict "
     "new_keys_object clone_combined insertdict insert_to_emptydict "
     "_PyODict _PyObject_InitializeDict _PyObjectDict _PyObject_MaterializeManagedDict odict PyODict _odict "
     "make_dict_from make_keys_shared copy_values new_values"},
    {HKP_LIST, "PyList _PyList PySequence_List PySequence_Fast PyMapping_ list py_list _list_extend merge_"},
    {HKP_TUPLE, "PyTuple _PyTuple PySequence_Tuple tuple PyStructSequence structseq"},
    {HKP_SET, "PySet _PySet PyFrozenSet set_ frozenset make_new_set make_new_frozenset setiter"},
    {HKP_TYPE,
     "PyType _PyType type_ mro_ PyDescr descr wrapper PyWrapper mappingproxy PyDictProxy slot_ super_ "
     "_PySuper getset_ Py_GenericAlias ga_ union_ unionbuilder make_union abc_ _add_to_weak_set _in_weak_set "
     "_Py_union _Py_make_ typevar paramspec typealias _abc "
     "property_ _PyStructSequence add_subclass add_methods add_members add_getset PyStaticMethod_"},
    {HKP_FUNCTION,
     "PyFunction _PyFunction func_ function_ PyCFunction PyCMethod meth_ PyMethod_ method_ "
     "PyClassMethod PyInstanceMethod instancemethod cm_ sm_ PyCell cell_ classmethod_ staticmethod_"},
    {HKP_CODE, "PyCode_ _PyCode_ code_ PyUnstable_Code intern_constants lineiter_ init_code new_code_arena "
               "_Py_Specialize _PyStaticCode _PyOptimizer _PyExecutor uop_ _PyJIT"},
    {HKP_FRAME, "PyFrame _PyFrame frame_ push_chunk allocate_chunk _PyThreadState_PushFrame "
                "_PyThreadState_BumpFrame framelocalsproxy take_ownership frame_setlineno"},
    {HKP_GENERATOR, "PyGen _PyGen gen_ coro_ PyCoro PyAsyncGen _PyAsyncGen async_gen PyAnextAwaitable "
                    "anextawaitable make_gen _Py_MakeCoro agen"},
    {HKP_ITERATOR, "PySeqIter PyCallIter calliter iter_ enum_ enumerate reversed_ range_ rangeiter longrange "
                   "make_range PyRange map_ zip_ filter_ slice_ PySlice _PySlice _PyBuildSlice"},
    {HKP_EXCEPTION,
     "PyErr _PyErr PyException _PyException BaseException OSError oserror ImportError SyntaxError "
     "StopIteration SystemExit KeyError AttributeError NameError MemoryError UnicodeDecodeError "
     "UnicodeEncodeError UnicodeTranslateError PyUnicodeDecodeError PyUnicodeEncodeError "
     "PyTraceBack _PyTraceBack tb_ warn _Py_CalculateSuggestions _PyWarnings get_memory_error"},
    {HKP_MODULE, "PyModule _PyModule module_ new_module PyInit PyCapsule capsule_ _PyNamespace namespace_"},
    {HKP_IMPORT,
     "PyImport _PyImport import_ _imp PyMarshal _PyMarshal r_object r_string r_long r_float r_byte "
     "w_reserve w_object marshal _extensions_cache"},
    {HKP_PARSER,
     "_PyPegen _PyParser PyParser _PyTokenizer PyTokenizer _PyLexer tok_ _loop0 _loop1 _gather _tmp_ "
     "_PyAST PyAST ast_ ast2obj obj2ast _PyArena PyArena block_new block_alloc _Py_asdl fstring_ "
     "PyOS_Readline _Py_SourceAsString"},
    {HKP_COMPILER,
     "compiler_ _PyCompile _PyAST_Compile _PyAST_Optimize _PyCfg cfg_ _PyAssemble assemble "
     "PySymtable _PySymtable symtable_ ste_ addop _PyInstructionSequence inst_seq _PyFuture "
     "_Py_Mangle codegen_ basicblock_ constevaluator_ new_compiler analyze_ update_symbols ref_stack_ "
     "push_cf_context optimize_ Py_CompileString Py_SymtableString merge_const_one"},
    {HKP_REGEX, "_sre sre_ pattern_ match_ scanner_ data_stack_grow state_init expand_template"},
    {HKP_CODECS, "PyCodec _PyCodec _codecs codec charmap _multibytecodec"},
    {HKP_IO,
     "_io _PyIO buffered _buffered fileio iobase stringio _stringio bytesio textiowrapper _textio PyFile "
     "_PyFile _PyIncrementalNewline incrementalnewline rawio _bufferedreader _bufferedwriter stdprinter"},
    {HKP_OS, "os_ posix ScandirIterator DirEntry path_ iov_ parse_arglist parse_envlist convertenviron "
             "PyOS_FSPath PyOS_AfterFork _Py_abspath _Py_join_relfile"},
    {HKP_BUFFER, "PyMemoryView _PyMemoryView _PyManagedBuffer memory_ memoryview mbuf_ PyBuffer _PyBuffer "
                 "buffer_to_ PyObject_CopyData slot_bf_getbuffer PyPickleBuffer picklebuf_"},
    {HKP_WEAKREF, "PyWeakref _PyWeakref weakref proxy_ new_weakref allocate_weakref get_or_create_weakref"},
    {HKP_CONTEXT, "PyContext _PyContext context _context_ contextvar token_ _PyHamt hamt _contextvars"},
    {HKP_THREAD,
     "PyThread_ _PyThread_ thread lock_ rlock local_ newlockobject do_start_ PyThreadHandle ThreadHandle "
     "_PyParkingLot _PyMutex _PySemaphore"},
    {HKP_GC, "_PyGC PyGC gc_ PyObject_GC_Track _PyObjectStack"},
    {HKP_INTERPRETER,
     "PyInterpreter _PyInterpreter PyThreadState _PyThreadState new_threadstate PyConfig _PyConfig "
     "config_ PyPreConfig preconfig _PyPathConfig pathconfig PyWideStringList _PyWideStringList "
     "_PyRuntime _PyArgv Py_Initialize init_ pyinit PySys _PySys sys_ Py_DecodeLocale "
     "_Py_DecodeLocale Py_EncodeLocale _Py_EncodeLocale _Py_DecodeUTF8 _Py_EncodeUTF8 "
     "decode_current_locale encode_current_locale decode_locale encode_locale getpath "
     "_PyAtExit atexit_ PyUnstable_AtExit _PyXI _PyCrossInterpreterData _xidregistry PyGILState "
     "_Py_qsbr _register_builtins _PyUnicode_InitEncodings _PyMonitoring "
     "allocate_instrumentation force_instrument _PyRunRemoteDebugger perf_map_ faulthandler"},
    {HKP_ITERTOOLS,
     "itertools product_ combinations permutations chain_ groupby _grouper tee islice cycle_ "
     "accumulate count_ repeat_ starmap takewhile dropwhile filterfalse compress_ ziplongest cwr_ "
     "pairwise batched"},
    {HKP_COLLECTIONS, "deque _deque newblock defdict _collections tuplegetter"},
    {HKP_FUNCTOOLS,
     "partial_ lru_cache bounded_lru infinite_lru uncached_lru keyobject functools _functools"},
    {HKP_OPERATOR, "itemgetter attrgetter methodcaller _operator"},
    {HKP_TIME, "time_ _PyTime PyTime datetime date_ new_date_ new_delta_ new_timezone create_timezone"},
};

/* Source files, without `.c`. They go before these names: a static function may be called `pad` or `replace`.
 */
static const rule files[] = {
    {HKP_UNICODE, "unicodeobject unicodectype unicode_format unicode_formatter formatter_unicode _string "
                  "interpolationobject templateobject"},
    {HKP_BYTES, "bytesobject bytearrayobject bytes_methods pystrhex"},
    {HKP_INT, "longobject boolobject"},
    {HKP_FLOAT, "floatobject complexobject dtoa pystrtod"},
    {HKP_DICT, "dictobject odictobject"},
    {HKP_LIST, "listobject"},
    {HKP_TUPLE, "tupleobject structseq"},
    {HKP_SET, "setobject"},
    {HKP_TYPE, "typeobject descrobject unionobject genericaliasobject typevarobject _abc"},
    {HKP_FUNCTION, "funcobject methodobject classobject cellobject"},
    {HKP_CODE, "codeobject specialize"},
    {HKP_FRAME, "frameobject frame"},
    {HKP_GENERATOR, "genobject"},
    {HKP_ITERATOR, "iterobject enumobject rangeobject sliceobject"},
    {HKP_EXCEPTION, "exceptions errors traceback _warnings suggestions"},
    {HKP_MODULE, "moduleobject capsule namespaceobject modsupport"},
    {HKP_IMPORT, "import marshal frozen importdl dynload_shlib"},
    {HKP_PARSER,
     "parser pegen pegen_errors action_helpers string_parser tokenizer lexer peg_api Python-ast asdl "
     "pyarena Python-tokenize myreadline file_tokenizer readline_tokenizer string_tokenizer "
     "utf8_tokenizer"},
    {HKP_COMPILER,
     "compile symtable flowgraph assemble ast_opt ast ast_unparse future instruction_sequence codegen"},
    {HKP_REGEX, "_sre sre"},
    {HKP_CODECS, "codecs _codecsmodule"},
    {HKP_IO, "_iomodule bufferedio fileio iobase textio stringio bytesio fileobject"},
    {HKP_OS, "posixmodule pwdmodule"},
    {HKP_BUFFER, "memoryobject picklebufobject"},
    {HKP_WEAKREF, "weakrefobject _weakref"},
    {HKP_CONTEXT, "context hamt _contextvarsmodule"},
    {HKP_THREAD, "thread _threadmodule parking_lot lock"},
    {HKP_GC, "gcmodule gc object_stack"},
    {HKP_INTERPRETER,
     "pylifecycle pystate initconfig preconfig pathconfig sysmodule fileutils getpath main "
     "bootstrap_hash atexitmodule signalmodule crossinterp qsbr interpreteridobject instrumentation "
     "faulthandler"},
    {HKP_ITERTOOLS, "itertoolsmodule"},
    {HKP_COLLECTIONS, "_collectionsmodule"},
    {HKP_FUNCTOOLS, "_functoolsmodule"},
    {HKP_OPERATOR, "_operator"},
    {HKP_TIME, "timemodule pytime"},
};

/* Types without a module, and modules. */
static const rule types[] = {
    {HKP_UNICODE, "str unicodedata str_iterator str_ascii_iterator EncodingMap fieldnameiterator "
                  "formatteriterator _string string"},
    {HKP_BYTES, "bytes bytearray bytes_iterator bytearray_iterator"},
    {HKP_INT, "int bool"},
    {HKP_FLOAT, "float complex math cmath"},
    {HKP_DICT,
     "dict dict_keys dict_values dict_items dict_keyiterator dict_valueiterator dict_itemiterator "
     "dict_reversekeyiterator dict_reversevalueiterator dict_reverseitemiterator odict_iterator odict_keys "
     "odict_values odict_items"},
    {HKP_LIST, "list list_iterator list_reverseiterator"},
    {HKP_TUPLE, "tuple tuple_iterator"},
    {HKP_SET, "set frozenset set_iterator"},
    {HKP_INSTANCE, "object"},
    {HKP_TYPE, "type super property mappingproxy getset_descriptor member_descriptor method_descriptor "
               "classmethod_descriptor wrapper_descriptor method-wrapper _abc typing _typing "
               "types.GenericAlias types.UnionType"},
    {HKP_FUNCTION, "function builtin_function_or_method builtin_method method instancemethod classmethod "
                   "staticmethod cell"},
    {HKP_CODE, "code line_iterator positions_iterator"},
    {HKP_FRAME, "frame"},
    {HKP_GENERATOR, "generator coroutine coroutine_wrapper async_generator async_generator_asend "
                    "async_generator_athrow async_generator_wrapped_value anext_awaitable"},
    {HKP_ITERATOR,
     "iterator callable_iterator enumerate reversed range range_iterator longrange_iterator map filter "
     "zip slice"},
    {HKP_EXCEPTION, "traceback BaseException StopIteration StopAsyncIteration GeneratorExit SystemExit "
                    "KeyboardInterrupt BaseExceptionGroup _warnings"},
    {HKP_MODULE, "module moduledef PyCapsule types.SimpleNamespace"},
    {HKP_IMPORT, "_imp marshal zipimport"},
    {HKP_PARSER, "_ast _tokenize"},
    {HKP_COMPILER, "_symtable symtable"},
    {HKP_REGEX, "_sre re"},
    {HKP_CODECS, "_codecs"},
    {HKP_IO, "_io stderrprinter"},
    {HKP_OS, "posix os pwd"},
    {HKP_BUFFER, "memoryview memory_iterator managedbuffer pickle.PickleBuffer"},
    {HKP_WEAKREF, "weakref weakproxy weakcallableproxy _weakref"},
    {HKP_CONTEXT, "Context ContextVar Token contextvars _contextvars hamt hamt_array_node hamt_bitmap_node "
                  "hamt_collision_node keys_iterator values_iterator items_iterator keys values items"},
    {HKP_THREAD, "_thread"},
    {HKP_GC, "gc"},
    {HKP_INTERPRETER, "sys atexit _signal signal faulthandler InterpreterID _xxsubinterpreters"},
    {HKP_ITERTOOLS, "itertools"},
    {HKP_COLLECTIONS, "collections _collections"},
    {HKP_FUNCTOOLS, "functools _functools"},
    {HKP_OPERATOR, "operator _operator"},
    {HKP_TIME, "time datetime _datetime"},
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

struct hkp_words {
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
static size_t each_word(const rule *rules, size_t count, hkp_words *words, table *to)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        for (const char *text = rules[i].words; *text != 0;) {
            size_t length = strcspn(text, " ");
            if (length > 0 && to) {
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

static size_t fill(hkp_words *words)
{
    return each_word(first, COUNT(first), words, words ? &words->first : NULL) +
           each_word(prefixes, COUNT(prefixes), words, words ? &words->functions : NULL) +
           each_word(files, COUNT(files), words, words ? &words->files : NULL) +
           each_word(types, COUNT(types), words, words ? &words->types : NULL);
}

/* Not by hkp_pages, which is in the section of those who have lines. */
hkp_words *hkp_words_open(void)
{
    const size_t size = sizeof(hkp_words) + (fill(NULL) + 1) * sizeof(word);
    hkp_words *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) return NULL;
    fill(words);
    return words;
}

void hkp_words_close(hkp_words *words)
{
    munmap(words, sizeof *words + (words->count + 1) * sizeof *words->words);
}

/* Most words of one beginning have another end, or are longer. */
static bool begins(const char *name, size_t length, const word *w)
{
    return w->length <= length && name[w->length - 1] == w->text[w->length - 1] &&
           memcmp(name, w->text, w->length) == 0;
}

static hkp_subsystem search_whole(const hkp_words *words, const table *in, const char *name, size_t length)
{
    uint32_t letters = letters_of(name, length);
    for (unsigned i = in->heads[head_of(letters)]; i != 0; i = words->words[i].next) {
        const word *w = &words->words[i];
        if (w->letters == letters && w->length == length && begins(name, length, w))
            return (hkp_subsystem)w->subsystem;
    }
    return HKP_CORE;
}

/* By the longest word with which the name begins; a helper's is the whole name. */
static hkp_subsystem search_beginning(const hkp_words *words, const table *in, const char *name)
{
    size_t length = strlen(name), best = 0;
    hkp_subsystem found = HKP_CORE;
    uint32_t letters = letters_of(name, length);
    for (int n = 0; n < 2 && best == 0; n++, letters &= 0xffffff) {
        for (unsigned i = in->heads[head_of(letters)]; i != 0; i = words->words[i].next) {
            const word *w = &words->words[i];
            if (w->letters != letters || w->length <= best || !begins(name, length, w)) continue;
            if (w->subsystem == HKP_HELPER && name[w->length] != 0 && name[w->length] != '.') continue;
            best = w->length;
            found = (hkp_subsystem)w->subsystem;
        }
    }
    return found;
}

hkp_subsystem hkp_subsystem_of_file(const hkp_words *words, const char *file)
{
    return search_whole(words, &words->files, file, strcspn(file, "."));
}

hkp_subsystem hkp_subsystem_of(const hkp_words *words, const char *function, hkp_subsystem by_file)
{
    hkp_subsystem before = search_beginning(words, &words->first, function);
    if (before != HKP_CORE) return before;
    if (by_file != HKP_CORE) return by_file;
    /* Grammar rules are called after what they parse: `import_from_rule`, `list_rule`. */
    size_t length = (size_t)(strchrnul(function, '.') - function);
    if (length > 5 && memcmp(function + length - 5, "_rule", 5) == 0) return HKP_PARSER;
    return search_beginning(words, &words->functions, function);
}

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

hkp_subsystem hkp_subsystem_of_type(const hkp_words *words, const char *type)
{
    if (ends_with(type, "Error") || ends_with(type, "Exception") || ends_with(type, "Warning"))
        return HKP_EXCEPTION;
    hkp_subsystem whole = search_whole(words, &words->types, type, strlen(type));
    return whole != HKP_CORE ? whole : search_whole(words, &words->types, type, strcspn(type, "."));
}
