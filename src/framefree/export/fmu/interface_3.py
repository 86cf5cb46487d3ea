"""The functions of FMI 3.0 in C."""

TYPES = ("Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
C_TYPES = {
    "Float32": "float",
    "Int8": "int8_t",
    "UInt8": "uint8_t",
    "Int16": "int16_t",
    "UInt16": "uint16_t",
    "Int32": "int32_t",
    "UInt32": "uint32_t",
    "Int64": "int64_t",
    "UInt64": "uint64_t",
    "Boolean": "bool",
    "String": "const char *",
}
HEAD = """
#include <stdbool.h>

typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*LogCallback)(void *, fmi3Status, const char *, const char *);

static fmi3Status refuse(Model *model, const char *words)
{
    if (model->log != NULL) {
        ((LogCallback)model->log)(model->environment, fmi3Error, "logStatusError", words);
    }
    return fmi3Error;
}

EXPORT const char *fmi3GetVersion(void)
{
    return "3.0";
}

EXPORT fmi3Status fmi3SetDebugLogging(void *m, bool on, size_t count, const char *const *names)
{
    (void)m, (void)on, (void)count, (void)names;
    return fmi3OK;
}

EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *path,
                                          bool visible, bool logging, void *environment,
                                          LogCallback log)
{
    (void)path, (void)visible, (void)logging;
    return STATES > 0 ? make(name, token, (Logger)log, environment) : NULL;
}

EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path,
                                         bool visible, bool logging, bool events, bool early,
                                         const uint32_t *intermediate, size_t count,
                                         void *environment, LogCallback log, void (*update)(void))
{
    (void)path, (void)visible, (void)logging, (void)events, (void)early;
    (void)intermediate, (void)count, (void)update;
    return make(name, token, (Logger)log, environment);
}

EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token,
                                               const char *path, bool visible, bool logging,
                                               void *environment, LogCallback log,
                                               void (*clock)(void), void (*lock)(void),
                                               void (*unlock)(void))
{
    (void)name, (void)token, (void)path, (void)visible, (void)logging, (void)environment;
    (void)log, (void)clock, (void)lock, (void)unlock;
    return NULL;
}

EXPORT void fmi3FreeInstance(void *m)
{
    free(m);
}

EXPORT fmi3Status fmi3EnterInitializationMode(void *m, bool tolerant, double tolerance,
                                              double start, bool stops, double stop)
{
    (void)tolerant, (void)tolerance, (void)stops, (void)stop;
    start_at(m, start);
    return fmi3OK;
}

EXPORT fmi3Status fmi3Reset(void *m)
{
    begin(m);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetFloat64(void *m, const uint32_t *vr, size_t count, double *values,
                                 size_t size)
{
    (void)size;
    return get_numbers(m, vr, count, values) ? fmi3OK : refuse(m, "no such variable");
}

EXPORT fmi3Status fmi3SetFloat64(void *m, const uint32_t *vr, size_t count, const double *values,
                                 size_t size)
{
    (void)size;
    return set_numbers(m, vr, count, values) ? fmi3OK : refuse(m, "no such variable");
}

EXPORT fmi3Status fmi3GetFMUState(void *m, void **state)
{
    if (*state == NULL) {
        *state = malloc(sizeof(Numbers));
    }
    if (*state == NULL) {
        return fmi3Fatal;
    }
    memcpy(*state, &((Model *)m)->now, sizeof(Numbers));
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetFMUState(void *m, void *state)
{
    memcpy(&((Model *)m)->now, state, sizeof(Numbers));
    return fmi3OK;
}

EXPORT fmi3Status fmi3FreeFMUState(void *m, void **state)
{
    (void)m;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

EXPORT fmi3Status fmi3DoStep(void *m, double time, double step, bool kept, bool *event,
                             bool *terminate, bool *early, double *last)
{
    (void)kept;
    *event = *terminate = *early = false;
    if (!move(m, time, step)) {
        *last = time;
        return refuse(m, "the communication step must be a multiple of the period");
    }
    *last = time + step;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfEventIndicators(void *m, size_t *count)
{
    (void)m;
    *count = 0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfContinuousStates(void *m, size_t *count)
{
    (void)m;
    *count = STATES;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetEventIndicators(void *m, double *values, size_t count)
{
    (void)m, (void)values;
    return count ? fmi3Error : fmi3OK;
}

EXPORT fmi3Status fmi3SetTime(void *m, double time)
{
    set_time(m, time);
    return fmi3OK;
}

EXPORT fmi3Status fmi3CompletedIntegratorStep(void *m, bool kept, bool *event, bool *terminate)
{
    (void)m, (void)kept;
    *event = *terminate = false;
    return fmi3OK;
}

EXPORT fmi3Status fmi3UpdateDiscreteStates(void *m, bool *again, bool *terminate, bool *nominals,
                                           bool *values, bool *timed, double *time)
{
    (void)m, (void)time;
    *again = *terminate = *nominals = *values = *timed = false;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStates(void *m, double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        get_states(m, values);
        return fmi3OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi3Error;
}

EXPORT fmi3Status fmi3SetContinuousStates(void *m, const double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        set_states(m, values);
        return fmi3OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi3Error;
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(void *m, double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        get_rates(m, values);
        return fmi3OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi3Error;
}

EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(void *m, double *values, size_t count)
{
    size_t k;
    (void)m;
    for (k = 0; k < count; ++k) {
        values[k] = 1.0;
    }
    return fmi3OK;
}
"""
PLAIN = ("ExitInitializationMode", "EnterEventMode", "Terminate", "EnterConfigurationMode")
PLAIN += ("ExitConfigurationMode", "EnterContinuousTimeMode", "EnterStepMode")
MODEL = "void *m"
UNSUPPORTED = {
    "GetBinary": f"{MODEL}, const uint32_t *vr, size_t n, size_t *s, const uint8_t **v, size_t k",
    "SetBinary": f"{MODEL}, const uint32_t *vr, size_t n, const size_t *s, "
    "const uint8_t *const *v, size_t k",
    "GetClock": f"{MODEL}, const uint32_t *vr, size_t n, bool *v",
    "SetClock": f"{MODEL}, const uint32_t *vr, size_t n, const bool *v",
    "GetNumberOfVariableDependencies": f"{MODEL}, uint32_t vr, size_t *n",
    "GetVariableDependencies": f"{MODEL}, uint32_t vr, size_t *a, uint32_t *b, size_t *c, int *d, "
    "size_t n",
    "SerializedFMUStateSize": f"{MODEL}, void *s, size_t *n",
    "SerializeFMUState": f"{MODEL}, void *s, uint8_t *v, size_t n",
    "DeserializeFMUState": f"{MODEL}, const uint8_t *v, size_t n, void **s",
    "GetDirectionalDerivative": f"{MODEL}, const uint32_t *a, size_t na, const uint32_t *b, "
    "size_t nb, const double *c, size_t nc, double *d, size_t nd",
    "GetAdjointDerivative": f"{MODEL}, const uint32_t *a, size_t na, const uint32_t *b, "
    "size_t nb, const double *c, size_t nc, double *d, size_t nd",
    "GetIntervalDecimal": f"{MODEL}, const uint32_t *vr, size_t n, double *v, int *q",
    "GetIntervalFraction": f"{MODEL}, const uint32_t *vr, size_t n, uint64_t *a, uint64_t *b, "
    "int *q",
    "GetShiftDecimal": f"{MODEL}, const uint32_t *vr, size_t n, double *v",
    "GetShiftFraction": f"{MODEL}, const uint32_t *vr, size_t n, uint64_t *a, uint64_t *b",
    "SetIntervalDecimal": f"{MODEL}, const uint32_t *vr, size_t n, const double *v",
    "SetIntervalFraction": f"{MODEL}, const uint32_t *vr, size_t n, const uint64_t *a, "
    "const uint64_t *b",
    "SetShiftDecimal": f"{MODEL}, const uint32_t *vr, size_t n, const double *v",
    "SetShiftFraction": f"{MODEL}, const uint32_t *vr, size_t n, const uint64_t *a, "
    "const uint64_t *b",
    "EvaluateDiscreteStates": MODEL,
    "GetOutputDerivatives": f"{MODEL}, const uint32_t *vr, size_t n, const int32_t *o, double *v, "
    "size_t k",
    "ActivateModelPartition": f"{MODEL}, uint32_t c, double t",
}


def functions_3() -> str:
    """Return all functions of FMI 3.0; those of kinds of variables that there are not refuse."""
    parts = [HEAD]
    parts += [
        f"\nEXPORT fmi3Status fmi3{name}(void *m)\n{{\n    (void)m;\n    return fmi3OK;\n}}\n"
        for name in PLAIN
    ]
    for kind in (*TYPES, "Boolean", "String"):
        for way, const in (("Get", ""), ("Set", "const ")):
            own = C_TYPES[kind]
            own = f"{own}const *" if kind == "String" and const else f"{const}{own} *"
            parts.append(
                f"\nEXPORT fmi3Status fmi3{way}{kind}(void *m, const uint32_t *vr, size_t n, "
                f"{own}v, size_t k)\n{{\n    (void)vr, (void)v, (void)k;\n"
                '    return n == 0 ? fmi3OK : refuse(m, "all variables are Float64");\n}\n'
            )
    for name, arguments in UNSUPPORTED.items():
        names = [word.split()[-1].lstrip("*") for word in arguments.split(", ")]
        unused = ", ".join(f"(void){one}" for one in names)
        parts.append(
            f"\nEXPORT fmi3Status fmi3{name}({arguments})\n{{\n    {unused};\n"
            "    return fmi3Error;\n}\n"
        )
    return "".join(parts)
