// Threads of a test. Catch's assertions are not for threads: a thread throws, and the first failure is told
// by join().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test
{

[[noreturn]] inline void wrong(const std::string &what)
{
    throw std::logic_error(what);
}

inline void expect(bool truth, const char *what)
{
    if (!truth) wrong(what);
}

class Crew
{
  public:
    Crew() = default;
    Crew(size_t count, const std::function<void(size_t)> &work)
    {
        for (size_t i = 0; i < count; i++)
            add([=] { work(i); });
    }
    ~Crew()
    {
        join();
    }
    void add(std::function<void()> work)
    {
        threads_.emplace_back([this, work] {
            pass_stack();
            try {
                work();
            } catch (const std::exception &e) {
                std::lock_guard<std::mutex> hold(lock_);
                if (error_.empty()) error_ = e.what();
                failed = true;
            }
            pass_stack();
        });
    }
    // Waits for all; the first failure, "" = none.
    std::string join()
    {
        for (std::thread &thread : threads_)
            thread.join();
        threads_.clear();
        return error_;
    }
    std::atomic<bool> failed{false}; // for loops that wait for each other

  private:
    // A stack, and the thread register with it, goes from a dead thread to a new one under a lock of libc,
    // which ThreadSanitizer does not see.
    static void pass_stack()
    {
        static std::mutex stacks;
        std::lock_guard<std::mutex> hold(stacks);
    }

    std::vector<std::thread> threads_;
    std::mutex lock_;
    std::string error_;
};

// All threads meet; the last to come runs `alone` while the others wait.
class Meeting
{
  public:
    explicit Meeting(size_t count) : count_(count)
    {
    }
    void meet(const std::function<void()> &alone = {})
    {
        std::unique_lock<std::mutex> hold(lock_);
        const size_t round = round_;
        if (++here_ == count_) {
            std::exception_ptr error;
            try {
                if (alone) alone();
            } catch (...) {
                error = std::current_exception();
            }
            here_ = 0;
            round_++;
            all_.notify_all();
            if (error) std::rethrow_exception(error);
            return;
        }
        all_.wait(hold, [&] { return round_ != round; });
    }
    // A thread that will not come again.
    void leave()
    {
        std::lock_guard<std::mutex> hold(lock_);
        count_--;
        if (count_ && here_ == count_) {
            here_ = 0;
            round_++;
            all_.notify_all();
        }
    }

  private:
    std::mutex lock_;
    std::condition_variable all_;
    size_t count_, here_ = 0, round_ = 0;
};

// Calls fn again and again beside a test, about every `pause`; ends with the object.
class Beside
{
  public:
    Beside(std::chrono::microseconds pause, const std::function<void()> &fn)
    {
        crew_.add([=] {
            while (!stop_) {
                fn();
                calls++;
                std::this_thread::sleep_for(pause);
            }
        });
    }
    ~Beside()
    {
        stop();
    }
    std::string stop()
    {
        stop_ = true;
        return crew_.join();
    }
    bool failed() const
    {
        return crew_.failed;
    }
    std::atomic<uint64_t> calls{0};

  private:
    std::atomic<bool> stop_{false};
    Crew crew_;
};

} // namespace test
