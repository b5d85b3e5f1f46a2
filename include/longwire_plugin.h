/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The plugin interface of Longwire: your own code as a link's loss, delay,
 * rate or rewriting model.
 *
 *     cc -std=c99 -O2 -shared -fPIC -o mine.so mine.c
 *     longwire exec --loss plugin:file=./mine.so,p=0.1 -- ping far
 *
 * docs/plugins.md writes a plugin from nothing; examples/plugins/ holds
 * three. This header needs a C99 compiler and no library.
 *
 * A plugin exports one function, longwire_plugin, which returns a constant
 * struct longwire_plugin: its name and its hooks. Longwire makes one state of
 * it for each direction of a link. When a link names the same file with the
 * same parameters for several hooks, say --loss and --delay, the hooks share
 * that state.
 *
 * Rules for hooks:
 *  - Times are nanoseconds since the link came to be. They do not go back.
 *  - A hook decides by its arguments, its state and the random stream it is
 *    given, and by nothing else: no clock, no rand(), no file. Then a run is
 *    the same again for the same seed, live and offline.
 *  - A hook is given an array of packets in order and fills an array of as
 *    many results. What it decides must not depend on how packets are divided
 *    into arrays: handle them one after the other, draw in their order.
 *    Longwire makes no promise about the length of arrays; it is 1 or more.
 *  - Pointers that a hook is given are valid until it returns.
 *  - One state is never used by two threads at once, but it may be by one
 *    thread after another. Global variables are shared by all links.
 *  - Return LONGWIRE_OK, or fail() with a message: that ends the run. So do
 *    results out of range, and results that were not filled in.
 *  - Return within 5 s: a hook that does not ends the run.
 *  - Do not throw C++ exceptions, longjmp or exit out of a hook.
 */
#ifndef LONGWIRE_PLUGIN_H
#define LONGWIRE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A plugin is loaded by a Longwire of the same
 * version only. Within one version, functions and hooks may be added at the
 * ends of structs: struct_size says how much of one is there. */
#define LONGWIRE_PLUGIN_ABI 1

/* What functions and hooks return. */
#define LONGWIRE_OK 0
#define LONGWIRE_ERROR (-1)

/* Results that are times: never, and no time at all (which is refused). */
#define LONGWIRE_NEVER INT64_MAX
#define LONGWIRE_INVALID INT64_MIN

/* A time that is not known. */
#define LONGWIRE_UNKNOWN (-1)

/* What becomes of a packet: the results of the hook lose. */
enum longwire_fate {
    LONGWIRE_DELIVER = 0,
    LONGWIRE_LOSE = 1,
    /* Lost as well, but counted under another reason in reports: */
    LONGWIRE_LOSE_BIT_ERROR = 2, /* a bit error spoilt it */
    LONGWIRE_LOSE_OUTAGE = 3,    /* the medium had an outage */
    LONGWIRE_LOSE_CONTENT = 4    /* for what it holds */
};

/* A packet as a hook sees it. */
struct longwire_packet {
    /* When it reaches the hook: lose at the entry, its arrival; lose on the
     * medium, delay and rewrite, its departure from the rate; depart, when
     * its service begins. */
    int64_t at_ns;
    /* When it reached the link; LONGWIRE_UNKNOWN in rewrite. */
    int64_t arrival_ns;
    /* Its bytes from the destination MAC address on, as far as they are
     * known: none may be, and a capture may hold only the first ones. */
    const uint8_t *bytes;
    uint32_t bytes_count;
    /* Its whole length in bytes, without preamble, FCS and gap. */
    uint32_t length;
    /* Its bits on the wire, the link's framing included; in depart only,
     * else 0. */
    uint64_t wire_bits;
    /* What waits in the link's queue. Of a first-in, first-out queue, whose
     * packets leave by times that are known as they arrive: as of the
     * packet's arrival. In rewrite 0. */
    uint64_t queue_packets;
    uint64_t queue_bytes;
};

/* The random stream of a link and hook, decided by the run's seed. */
struct longwire_random;

/* The parameters that the user gave: key=value,key=value. */
struct longwire_parameters;

/* What Longwire offers to a plugin. The struct that create is given lives as
 * long as the plugin's state. */
struct longwire_host {
    uint32_t abi; /* LONGWIRE_PLUGIN_ABI */
    uint32_t struct_size;

    /* Random numbers, in hooks that are given a stream.
     * 64 random bits. */
    uint64_t (*next_u64)(struct longwire_random *random);
    /* Uniform in 0..max, both included, without bias. */
    uint64_t (*up_to)(struct longwire_random *random, uint64_t max);
    /* Uniform in (0, 1], in steps of 2^-53. */
    double (*uniform)(struct longwire_random *random);
    /* 1 with probability p, else 0. What is not in 0..1 ends the run. */
    int (*chance)(struct longwire_random *random, double p);
    /* Exponential with this mean in nanoseconds, 0 or more; the same on
     * every machine. A negative mean ends the run. */
    int64_t (*exponential)(struct longwire_random *random, int64_t mean_ns);

    /* Messages, in any hook.
     * Says why the hook fails: return fail(host, "...") from it. Always
     * LONGWIRE_ERROR. */
    int (*fail)(const struct longwire_host *host, const char *message);
    /* Writes a line to standard error, behind the plugin's name. Each state
     * may write 100 of them. */
    void (*log)(const struct longwire_host *host, const char *message);

    /* Parameters, in create. A parameter that nothing has asked for when
     * create returns was misspelt: Longwire refuses it.
     * The value as text, or NULL if it was not given. */
    const char *(*text)(const struct longwire_parameters *parameters, const char *key);
    /* Refuses its absence. */
    int (*require)(const struct longwire_parameters *parameters, const char *key);
    /* Reads a value in Longwire's units. If it was not given, *value stays
     * what it is: the default. If it cannot be read the result is
     * LONGWIRE_ERROR, and the message is Longwire's. */
    int (*time)(const struct longwire_parameters *parameters, const char *key,
                int64_t *nanoseconds); /* 20ms */
    int (*rate)(const struct longwire_parameters *parameters, const char *key,
                uint64_t *bits_per_second); /* 10mbit */
    int (*size)(const struct longwire_parameters *parameters, const char *key,
                uint64_t *bytes); /* 64kb */
    int (*probability)(const struct longwire_parameters *parameters, const char *key,
                       double *value); /* 1% or 0.01 */
    int (*count)(const struct longwire_parameters *parameters, const char *key,
                 uint64_t *value); /* 100 */
    int (*real)(const struct longwire_parameters *parameters, const char *key,
                double *value); /* -1.5 */
};

/* What a plugin may say of itself in create. All of it is 0 before. */
struct longwire_hints {
    uint32_t struct_size;
    uint32_t reserved;
    /* The mean of its delays, for default queue limits and reports. */
    int64_t delay_mean_ns;
    /* No delay is shorter; a shorter one ends the run. Queues that decide
     * late may then do so in batches. */
    int64_t delay_least_ns;
    /* Its mean rate, for default queue limits; 0 is unknown, and the default
     * queue then has no limit. */
    uint64_t rate_mean_bits_per_second;
};

/* A plugin. What it does not have is NULL. */
struct longwire_plugin {
    uint32_t abi; /* LONGWIRE_PLUGIN_ABI */
    uint32_t struct_size; /* sizeof(struct longwire_plugin) */
    /* Its name in messages. */
    const char *name;

    /* Makes a state. Longwire also calls this only to see whether the
     * parameters are good, and destroys the state at once. When it fails,
     * destroy is not called. */
    int (*create)(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **state);
    /* Called once for each state that create made. */
    void (*destroy)(void *state);

    /* --loss: fates[i] is an enum longwire_fate. */
    int (*lose)(void *state, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates);

    /* --delay: the propagation delay of each packet, 0 or more. */
    int (*delay)(void *state, struct longwire_random *random,
                 const struct longwire_packet *packets, size_t count, int64_t *delays_ns);

    /* --rate: when the next packet is taken out of the queue, at from_ns or
     * after it: the next slot begins. Without this hook, at from_ns. */
    int (*ready)(void *state, struct longwire_random *random, int64_t from_ns,
                 int64_t *ready_ns);
    /* --rate: when the last bit of each packet has left. Service begins at
     * the packet's at_ns or when the packet before it has left, whichever is
     * later; the result is not before that. */
    int (*depart)(void *state, struct longwire_random *random,
                  const struct longwire_packet *packets, size_t count,
                  int64_t *departures_ns);

    /* --rewrite: changes up to packets[i].bytes_count bytes at bytes[i], which
     * is where packets[i].bytes points too. A packet keeps its length. */
    int (*rewrite)(void *state, struct longwire_random *random,
                   const struct longwire_packet *packets, size_t count,
                   uint8_t *const *bytes);
};

/* Marks the function that a plugin exports. */
#if defined(__GNUC__)
#define LONGWIRE_EXPORT __attribute__((visibility("default")))
#else
#define LONGWIRE_EXPORT
#endif

/* The function itself, for every plugin to define. It returns the same
 * struct at every call, which is never changed. */
LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void);

/* Turns computed nanoseconds into a result, rounded to the nearest.
 * LONGWIRE_INVALID, which ends the run, if they are not a number or beyond
 * what a time can hold. */
static inline int64_t longwire_nanoseconds(double nanoseconds)
{
    /* 2^63 has an exact double; a comparison with NaN is false. */
    if (!(nanoseconds > -9223372036854775808.0 && nanoseconds < 9223372036854775808.0))
        return LONGWIRE_INVALID;
    return (int64_t)(nanoseconds < 0 ? nanoseconds - 0.5 : nanoseconds + 0.5);
}

#ifdef __cplusplus
}
#endif

#endif /* LONGWIRE_PLUGIN_H */
