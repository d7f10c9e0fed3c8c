/* The specification's tests as spec.py writes them in C, for test_wasm2c_spec.cpp. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <wasm-rt-impl.h>

struct spec_module {
    const char *name;
    void *instance;
    size_t size;
    void (*begin)(void);
    void (*run)(void);
    void (*end)(void);
};
extern const struct spec_module spec_modules[];
/* Defined by the driver. */
void spec_ran(const char *command);
void spec_failed(const char *command);

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double double_of(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#define SPEC_TRY(call, otherwise, ...)                                                                       \
    do {                                                                                                     \
        spec_ran(#call);                                                                                     \
        if (wasm_rt_impl_try() == 0) {                                                                       \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            otherwise;                                                                                       \
        }                                                                                                    \
    } while (0)
#define FAILED(call) spec_failed(#call)
#define TRAPS(call) SPEC_TRY(call, (void)0, (void)(call), FAILED(call))
#define RUNS(call) SPEC_TRY(call, FAILED(call), (void)(call))
#define IS_NAN(call) SPEC_TRY(call, FAILED(call), if (!isnan(call)) FAILED(call))
#define GIVES(type, call, expected)                                                                          \
    SPEC_TRY(call, FAILED(call), type result = (call), wanted = (expected);                                  \
             if (memcmp(&result, &wanted, sizeof result) != 0) FAILED(call))

/* The functions of other modules that the scripts import; their instances are NULL. */
struct Z_a_instance_t;
struct Z_spectest_instance_t;
#define NUMBER(n)                                                                                            \
    uint32_t Z_aZ_ef##n(struct Z_a_instance_t *a)                                                            \
    {                                                                                                        \
        (void)a;                                                                                             \
        return n;                                                                                            \
    }
NUMBER(0)
NUMBER(1)
NUMBER(2)
NUMBER(3)
NUMBER(4)

void Z_spectestZ_print(struct Z_spectest_instance_t *spectest)
{
    (void)spectest;
}

void Z_spectestZ_print_i32(struct Z_spectest_instance_t *spectest, uint32_t n)
{
    (void)spectest;
    (void)n;
}
