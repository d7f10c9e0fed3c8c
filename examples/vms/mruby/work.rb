# Objects, strings, arrays, hashes, closures, exceptions, garbage of all of them.
class Tree
  def initialize(left, right)
    @left = left
    @right = right
  end

  def count
    @left ? 1 + @left.count + @right.count : 1
  end
end

def build(depth)
  depth == 0 ? Tree.new(nil, nil) : Tree.new(build(depth - 1), build(depth - 1))
end

sum = 0
8.times { sum += build(9).count }
puts "trees #{sum} #{build(11).count}"

$seed = 42
def random(n)
  $seed = $seed * 16807 % 2147483647
  $seed % n
end
SYLLABLES = %w[ka to mi re su no li va pe go]
words = (0...6000).map { (0..1 + random(3)).map { SYLLABLES[random(10)] }.join }
counts = Hash.new(0)
words.join(" ").split(" ").each { |word| counts[word] += 1 }
rows = counts.map { |word, count| { word: word, count: count, tags: [word.size, word[0]] } }
rows.sort! { |a, b| a[:count] == b[:count] ? a[:word] <=> b[:word] : b[:count] <=> a[:count] }
text = rows.map { |row| "#{row[:word]}=#{row[:count]}" }.join(",")
puts "words #{rows.size} #{rows[0][:word]} #{text.size} #{text.gsub("ka", "-").size}"

counters = (0...1500).map { |step| n = 0; -> { n += step } }
puts "closures #{(0...5).map { counters.map(&:call).inject(:+) }.inject(:+)}"

failed = 0
2000.times do |i|
  begin
    raise ArgumentError, "number #{i}" if i % 2 == 1
  rescue ArgumentError => e
    failed += e.message.size
  end
end
puts "exceptions #{failed}"

Point = Struct.new(:x, :y)
queue = []
8000.times { |i| queue.push(Point.new(i, i.to_s)); queue.shift if i % 3 == 0 }
puts "queue #{queue.size} #{queue[7].x} #{queue.map { |p| p.y.size }.inject(:+)}"

fiber = Fiber.new { 300.times { |i| Fiber.yield([i] * 10) }; nil }
total = 0
while (list = fiber.resume)
  total += list.inject(:+)
end
puts "fiber #{total}"
