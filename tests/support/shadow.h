// A shadow of several contexts in one space: random operations run on hakmem and on plain C++ containers
// side by side; any difference throws. Shared by the model test and the fuzz target, which differ only
// in where decisions come from.
#pragma once

#include "fake_os.h"
#include "recycled.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace test
{

class Shadow
{
  public:
    // `decide` supplies the numbers that all decisions are made of. Sums are compared after each `every`th
    // operation of a heap, and after what changes much. keep: see FakeOs.
    explicit Shadow(std::function<uint64_t()> decide, unsigned every = 1, bool keep = false);
    ~Shadow();

    // One operation; throws std::logic_error where hakmem contradicts the shadow.
    void step();
    // Compares everything: contents, labels, statistics, visits, consistency.
    void verify();
    // Destroys all and looks for leaks.
    void finish();

    uint64_t steps = 0, refusals = 0;
    size_t most_blocks = 0;

  private:
    // Address of a block -> its place in `blocks`.
    using Order = std::map<const char *, size_t, std::less<>, Recycled<std::pair<const char *const, size_t>>>;
    struct Block {
        char *p;
        size_t n, usable;
        hak_site site;
        uint32_t id;
        hak_label label;
        Order::iterator entry;
    };
    // What the program in a heap is like: of every kind; small blocks that are resized by small steps, in
    // packed units mostly; blocks that mostly shrink.
    enum class Habit { MIXED, STEPS, SHRINKS };
    struct Sum {
        size_t bytes = 0, blocks = 0;
    };
    struct Heap {
        hak_ctx *ctx = nullptr;
        std::vector<Block> blocks;
        Order order;
        std::vector<hak_label> labels;
        std::array<Sum, HAK_LABELS_MAX + 1> sums{};
        size_t live = 0, target = 1000, hard = 0, ceiling = 0;
        bool in_group = false, retired = false, checked = false, large = false;
        unsigned unchecked = 0; // operations since the sums were compared
        Habit habit = Habit::MIXED;
        std::string error; // what on_error was told
    };

    size_t below(size_t n)
    {
        return n ? (size_t)(decide_() % n) : 0;
    }
    [[noreturn]] void wrong(const Heap &h, const std::string &what) const;
    void open(Heap &h);
    void close(Heap &h, bool retire);
    void allocate(Heap &h);
    void reallocate(Heap &h, size_t index);
    void release(Heap &h, size_t index);
    void sweep(Heap &h);
    void rare(Heap &h);
    void trim(Heap &h);
    void act(Heap &h);
    Order::iterator forget(Heap &h, size_t index);
    void drop_from_sums(Heap &h, const Block &b);
    void add_to_sums(Heap &h, const Block &b);
    void check_new(Heap &h, Block &b, size_t align);
    void check_contents(const Heap &h, const Block &b, size_t n) const;
    void check_around(Heap &h, Order::iterator at) const;
    void check_edges(const Heap &h, const Block &b) const;
    void enter(Heap &h, size_t index);
    void check_all(const Heap &h) const;
    void check_null(Heap &h);
    void check_stats(Heap &h);
    size_t random_size(const Heap &h);
    size_t next_size(const Heap &h, size_t n);
    size_t told_size(const Heap &h, const Block &b);
    void check_told(Heap &h, bool right) const;
    hak_label random_label(Heap &h);
    size_t live_bytes() const;

    std::function<uint64_t()> decide_;
    FakeOs os_;
    hak_space *space_ = nullptr;
    hak_quota *group_ = nullptr;
    std::array<Heap, 4> heaps_;
    uint32_t next_id_ = 1;
    uint64_t failed_before_ = 0, disarm_at_ = 0;
    const unsigned every_;
};

} // namespace test
