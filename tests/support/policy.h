// A policy from its text, for the time of a test.
#pragma once

#include "heap.h"

#include <hakmem/policy.h>

namespace test
{

struct Policy {
    hak_policy *policy;

    explicit Policy(const std::string &statements, const hak_os *os = nullptr)
    {
        std::string text = "hakmem-policy 1\n" + statements;
        hak_policy_error error;
        policy = hak_policy_parse(os, text.data(), text.size(), &error);
        if (!policy) FAIL(error.line << ": " << error.text);
    }
    Policy(const Policy &) = delete;
    Policy &operator=(const Policy &) = delete;
    ~Policy()
    {
        hak_policy_unref(policy);
    }
    operator const hak_policy *() const
    {
        return policy;
    }
};

} // namespace test
