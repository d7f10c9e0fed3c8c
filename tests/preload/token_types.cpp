// An unchanged program in C++, for test_tokens.py, which compiles it with -fsanitize=alloc-token.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop
{

struct Item {
    int numbers[10];
    virtual ~Item() = default;
};

template <typename T>
struct Basket {
    T first;
    Basket *next;
};

} // namespace shop

void *volatile kept;

int main()
{
    struct Local {
        int numbers[3];
    };
    static Local *volatile some_local;
    for (int i = 0; i < 9; i++)
        some_local = new Local;
    for (int i = 0; i < 7; i++)
        kept = new shop::Item;
    for (int i = 0; i < 3; i++)
        kept = new shop::Basket<int>{i, nullptr};
    kept = new shop::Item *[10];
    auto *names = new std::map<int, std::string>;
    for (int i = 0; i < 100; i++)
        (*names)[i] = std::string(50, 'x');
    auto *numbers = new std::unordered_map<std::string, std::vector<int>>;
    for (int i = 0; i < 100; i++)
        (*numbers)[std::to_string(i)].resize(30);
    kept = new std::shared_ptr<shop::Basket<int>>(std::make_shared<shop::Basket<int>>());
    kept = names;
    kept = numbers;
    return kept == nullptr;
}
