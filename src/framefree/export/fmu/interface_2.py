"""The functions of FMI 2.0 in C."""

HEAD = """
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef void (*LogCallback)(void *, const char *, fmi2Status, const char *, const char *, ...);
typedef struct {
    LogCallback logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, fmi2Status);
    void *environment;
} Callbacks;
typedef struct {
    int needed, terminate, nominals, values, timed;
    double time;
} EventInfo;

static fmi2Status refuse(Model *model, const char *words)
{
    if (model->log != NULL) {
        ((LogCallback)model->log)(model->environment, model->name, fmi2Error, "logStatusError",
                                  "%s", words);
    }
    return fmi2Error;
}

EXPORT const char *fmi2GetTypesPlatform(void)
{
    return "default";
}

EXPORT const char *fmi2GetVersion(void)
{
    return "2.0";
}

EXPORT fmi2Status fmi2SetDebugLogging(void *m, int on, size_t count, const char *const *names)
{
    (void)m, (void)on, (void)count, (void)names;
    return fmi2OK;
}

EXPORT void *fmi2Instantiate(const char *name, int kind, const char *token, const char *path,
                             const Callbacks *callbacks, int visible, int logging)
{
    (void)path, (void)visible, (void)logging;
    if (kind == 0 && STATES == 0) {
        return NULL;
    }
    return make(name, token, callbacks == NULL ? NULL : (Logger)callbacks->logger,
                callbacks == NULL ? NULL : callbacks->environment);
}

EXPORT void fmi2FreeInstance(void *m)
{
    free(m);
}

EXPORT fmi2Status fmi2SetupExperiment(void *m, int tolerant, double tolerance, double start,
                                      int stops, double stop)
{
    (void)tolerant, (void)tolerance, (void)stops, (void)stop;
    start_at(m, start);
    return fmi2OK;
}

EXPORT fmi2Status fmi2Reset(void *m)
{
    begin(m);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetReal(void *m, const unsigned int *vr, size_t count, double *values)
{
    return get_numbers(m, vr, count, values) ? fmi2OK : refuse(m, "no such variable");
}

EXPORT fmi2Status fmi2SetReal(void *m, const unsigned int *vr, size_t count, const double *values)
{
    return set_numbers(m, vr, count, values) ? fmi2OK : refuse(m, "no such variable");
}

EXPORT fmi2Status fmi2GetFMUstate(void *m, void **state)
{
    if (*state == NULL) {
        *state = malloc(sizeof(Numbers));
    }
    if (*state == NULL) {
        return fmi2Fatal;
    }
    memcpy(*state, &((Model *)m)->now, sizeof(Numbers));
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetFMUstate(void *m, void *state)
{
    memcpy(&((Model *)m)->now, state, sizeof(Numbers));
    return fmi2OK;
}

EXPORT fmi2Status fmi2FreeFMUstate(void *m, void **state)
{
    (void)m;
    free(*state);
    *state = NULL;
    return fmi2OK;
}

EXPORT fmi2Status fmi2DoStep(void *m, double time, double step, int kept)
{
    (void)kept;
    return move(m, time, step)
               ? fmi2OK
               : refuse(m, "the communication step must be a multiple of the period");
}

EXPORT fmi2Status fmi2SetTime(void *m, double time)
{
    set_time(m, time);
    return fmi2OK;
}

EXPORT fmi2Status fmi2CompletedIntegratorStep(void *m, int kept, int *event, int *terminate)
{
    (void)m, (void)kept;
    *event = *terminate = 0;
    return fmi2OK;
}

EXPORT fmi2Status fmi2NewDiscreteStates(void *m, EventInfo *info)
{
    (void)m;
    memset(info, 0, sizeof(*info));
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetContinuousStates(void *m, double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        get_states(m, values);
        return fmi2OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi2Error;
}

EXPORT fmi2Status fmi2SetContinuousStates(void *m, const double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        set_states(m, values);
        return fmi2OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi2Error;
}

EXPORT fmi2Status fmi2GetDerivatives(void *m, double *values, size_t count)
{
#if STATES > 0
    if (count == STATES) {
        get_rates(m, values);
        return fmi2OK;
    }
#endif
    (void)m, (void)values, (void)count;
    return fmi2Error;
}

EXPORT fmi2Status fmi2GetEventIndicators(void *m, double *values, size_t count)
{
    (void)m, (void)values;
    return count ? fmi2Error : fmi2OK;
}

EXPORT fmi2Status fmi2GetNominalsOfContinuousStates(void *m, double *values, size_t count)
{
    size_t k;
    (void)m;
    for (k = 0; k < count; ++k) {
        values[k] = 1.0;
    }
    return fmi2OK;
}
"""
PLAIN = ("EnterInitializationMode", "ExitInitializationMode", "Terminate", "EnterEventMode")
PLAIN += ("EnterContinuousTimeMode", "CancelStep")
KINDS = {"Integer": "int *", "Boolean": "int *", "String": "const char **"}
SETS = {"Integer": "const int *", "Boolean": "const int *", "String": "const char *const *"}
MODEL = "void *m"
UNSUPPORTED = {
    "SerializedFMUstateSize": f"{MODEL}, void *s, size_t *n",
    "SerializeFMUstate": f"{MODEL}, void *s, char *v, size_t n",
    "DeSerializeFMUstate": f"{MODEL}, const char *v, size_t n, void **s",
    "GetDirectionalDerivative": f"{MODEL}, const unsigned int *a, size_t na, "
    "const unsigned int *b, size_t nb, const double *c, double *d",
    "SetRealInputDerivatives": f"{MODEL}, const unsigned int *a, size_t n, const int *o, "
    "const double *v",
    "GetRealOutputDerivatives": f"{MODEL}, const unsigned int *a, size_t n, const int *o, "
    "double *v",
    "GetStatus": f"{MODEL}, int k, fmi2Status *v",
    "GetRealStatus": f"{MODEL}, int k, double *v",
    "GetIntegerStatus": f"{MODEL}, int k, int *v",
    "GetBooleanStatus": f"{MODEL}, int k, int *v",
    "GetStringStatus": f"{MODEL}, int k, const char **v",
}


def functions_2() -> str:
    """Return all functions of FMI 2.0; those of kinds of variables that there are not refuse."""
    parts = [HEAD]
    parts += [
        f"\nEXPORT fmi2Status fmi2{name}(void *m)\n{{\n    (void)m;\n    return fmi2OK;\n}}\n"
        for name in PLAIN
    ]
    for way, kinds in (("Get", KINDS), ("Set", SETS)):
        parts += [
            f"\nEXPORT fmi2Status fmi2{way}{kind}(void *m, const unsigned int *vr, size_t n, "
            f"{own}v)\n{{\n    (void)vr, (void)v;\n"
            '    return n == 0 ? fmi2OK : refuse(m, "all variables are Real");\n}\n'
            for kind, own in kinds.items()
        ]
    for name, arguments in UNSUPPORTED.items():
        names = [word.split()[-1].lstrip("*") for word in arguments.split(", ")]
        unused = ", ".join(f"(void){one}" for one in names)
        parts.append(
            f"\nEXPORT fmi2Status fmi2{name}({arguments})\n{{\n    {unused};\n"
            "    return fmi2Error;\n}\n"
        )
    return "".join(parts)
