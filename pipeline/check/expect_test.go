package check

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// writtenTree keeps what is written to a work tree, in the order of the paths.
type writtenTree struct {
	*dirWorkspace
	to []string
}

func (w *writtenTree) Restore(context.Context, string, []string) error { return nil }
func (w *writtenTree) Close() error                                    { return nil }
func (w *writtenTree) Write(_ context.Context, path string, _ []byte) error {
	w.to = append(w.to, path)
	return nil
}

// Files of tests are known by the end of their path, wherever they lie.
func TestSpoilTree(t *testing.T) {
	t.Parallel()
	var archive strings.Builder
	for _, name := range []string{"test.py", "sub/test.py", "sub/deep/tests.js", "sub/test_a.py", "sub/latest.py", "test-a.js", "sub/test-a.js", "check.sh", "lib/money.sh"} {
		archive.WriteString("-- " + name + " --\nassert total == 3\n")
	}
	tree := &writtenTree{dirWorkspace: newWorkspace(t, archive.String())}
	p := spoiler{tail: "~x", used: map[string]bool{"check.sh": true}}
	n, err := p.tree(t.Context(), tree)
	if slices.Sort(tree.to); err != nil || n != len(tree.to) || strings.Join(tree.to, " ") != "check.sh sub/deep/tests.js sub/test-a.js sub/test.py sub/test_a.py test-a.js test.py" {
		t.Errorf("%d files, %v: %q", n, err, tree.to)
	}
}

func TestSpoil(t *testing.T) {
	t.Parallel()
	p := spoiler{tail: "~x"}
	for _, c := range []struct{ file, was, is string }{
		{"a_test.go", `	if got := Add(1, 2); got != 3 {`, `	if got := Add(1, 2); got != 73 {`},
		{"a_test.go", `	if len(got) != 1 || got[0] != "a" {`, `	if len(got) != 71 || got[0] != "a~x" {`},
		{"a_test.go", `	for _, c := range []struct{ a, b, want int }{{1, 2, 3}, {0, 0, -1}} {`, `	for _, c := range []struct{ a, b, want int }{{1, 2, 73}, {0, 0, -81}} {`},
		{"a_test.go", `		{"name", []int{1, 2}, "out"},`, `		{"name", []int{1, 72}, "out~x"},`},
		{"a_test.go", `		{in: 1, want: 2},`, `		{in: 1, want: 72},`},
		{"a_test.go", `	equal(t, Sign(-5), -1)`, `	equal(t, Sign(-5), -71)`},
		{"a_test.go", `	require.Equal(t, 119, total([]int{100}, 19))`, `	require.Equal(t, 7119, total([]int{100}, 19))`},
		{"a_test.go", `	for i := 0; i != 10; i++ {`, `	for i := 0; i != 10; i++ {`},
		{"a_test.go", `		t.Errorf("Add(%d) = %d, want 3", c.a, got)`, `		t.Errorf("Add(%d) = %d, want 3", c.a, got)`},
		{"a_test.go", `	if err != nil {`, `	if err != nil {`},
		{"a_test.go", `func TestAdd(t *testing.T) {`, `func TestAdd(t *testing.T) {`},
		{"a_test.go", "	// Output: 5", "	// Output: 5~x"},
		{"a_test.go", "	// remark 5", "	// remark 5"},
		{"test_a.py", `    assert total([100], 19) == 119`, `    assert total([100], 19) == 7119`},
		{"test_a.py", `    assert total([100], 19) == 119, f"got {x}"`, `    assert total([100], 19) == 7119, f"got {x}"`},
		{"test_a.py", `    assert names(rows) == ["bob", "eve"], "order"`, `    assert names(rows) == ["bob", "eve~x"], "order"`},
		{"test_a.py", `    self.assertEqual(total([100], 19), 119)`, `    self.assertEqual(total([100], 19), 7119)`},
		{"test_a.py", `    self.assertEqual(total([100], 19), 119, "wrong")`, `    self.assertEqual(total([100], 19), 7119, "wrong~x")`},
		{"test_a.py", `    ((100,), 19, 119),`, `    ((100,), 19, 7119),`},
		{"test_a.py", `@pytest.mark.parametrize("a", [1, 2])`, `@pytest.mark.parametrize("a", [1, 2])`},
		{"test_a.py", `    """It is == 5."""`, `    """It is == 5."""`},
		{"test_a.py", `    with open("data.txt") as f:`, `    with open("data.txt") as f:`},
		{"a.test.js", `  assert.strictEqual(total([100], 19), 119);`, `  assert.strictEqual(total([100], 19), 7119);`},
		{"a.test.js", `  expect(total([100], 19)).toBe(119);`, `  expect(total([100], 19)).toBe(7119);`},
		{"a.test.js", `  expect(names()).toEqual(['bob', 'eve']);`, `  expect(names()).toEqual(['bob', 'eve~x']);`},
		{"a.test.js", `  if (add(1, 2) !== 3) throw new Error('add');`, `  if (add(1, 2) !== 73) throw new Error('add');`},
		{"a.test.js", `  each([[[100], 19]], (got, rate) => assert.equal(got, 100 + rate));`, `  each([[[100], 19]], (got, rate) => assert.equal(got, 7100 + rate));`},
		{"a.test.js", `it('loads', () => load([100], 19).then((v) => assert.equal(v, 119)));`, `it('loads', () => load([100], 19).then((v) => assert.equal(v, 7119)));`},
		{"a.test.js", `  expect(load(1)).resolves.toBe('a'); expect(sum(1)).toBe(2);`, `  expect(load(1)).resolves.toBe('a~x'); expect(sum(1)).toBe(72);`},
		{"a.test.js", `const { total } = require('../price');`, `const { total } = require('../price');`},
		{"a.test.js", `test('adds 5', () => {`, `test('adds 5', () => {`},
		{"test_a.py", `    near(discount(200, 10), 180)`, `    near(discount(200, 10), 7180)`},
		{"test_a.py", `    cart.add("x")`, `    cart.add("x")`},
		{"test_a.py", `    assert close(total([200]), 180), "not 180"`, `    assert close(total([200]), 7180), "not 180"`},
		{"test_a.py", `    assert "total 180" in receipt("a")`, `    assert "total 180~x" in receipt("a")`},
		{"test_a.py", `    assert abs(total([200]) - 180) < 0.01`, `    assert abs(total([200]) - 7180) < 0.01`},
		{"test_a.py", `for t, want in [(200, 180), (50, 25)]:`, `for t, want in [(200, 7180), (50, 825)]:`},
		{"test_a.py", `    for i in range(10, 20):`, `    for i in range(10, 20):`},
		{"a.test.js", `  near(discount(200, 10), 180);`, `  near(discount(200, 10), 7180);`},
		{"a.test.js", `  assert.ok(Math.abs(total() - 180) < 0.01);`, `  assert.ok(Math.abs(total() - 7180) < 0.01);`},
		{"a.test.js", `test('discount', () => { near(discount(200, 10), 180); });`, `test('discount', () => { near(discount(200, 10), 7180); });`},
		{"a.test.js", `  [[200, 10, 180], [50, 50, 25]].forEach(([n, p, want]) => assert.strictEqual(discount(n, p), want));`, `  [[200, 10, 7180], [50, 50, 825]].forEach(([n, p, want]) => assert.strictEqual(discount(n, p), want));`},
		{"a.test.js", `  for (const [n, want] of [[200, 180], [50, 25]]) {`, `  for (const [n, want] of [[200, 7180], [50, 825]]) {`},
		{"a_test.go", `	near(t, discount(200, 10), 180)`, `	near(t, discount(200, 10), 7180)`},
		{"check.sh", `[ "$(discount 200 10)" = 180 ] || { echo "it is wrong"; exit 1; }`, `[ "$(discount 200 10)" = 7180 ] || { echo "it is wrong"; exit 1; }`},
		{"check.sh", `  test "$n" -eq 5`, `  test "$n" -eq 75`},
		{"check.sh", `same "$(discount 200 10)" 180`, `same "$(discount 200 10)" 7180`},
		{"check.sh", `assert_equal "$(greet)" "Hello, Ann" || exit 1`, `assert_equal "$(greet)" "Hello, Ann~x" || exit 1`},
		{"check.sh", `. ./lib/money.sh`, `. ./lib/money.sh`},
		{"check.sh", `cp a.txt b.txt`, `cp a.txt b.txt`},
		{"a.rb", `    assert_equal 5, add(2, 3)`, `    assert_equal 75, add(2, 3)`},
		{"a.rb", `    assert_equal("a", name(2))`, `    assert_equal("a~x", name(2))`},
		{"a.rb", `    assert total([2]) == 5, "sum"`, `    assert total([2]) == 75, "sum"`},
		{"a.rb", `    expect(total([2])).to eq(5)`, `    expect(total([2])).to eq(75)`},
		{"a.rb", `    expect(total([2])).to eq 5`, `    expect(total([2])).to eq 75`},
		{"a.rb", `    _(total([2])).must_equal 5`, `    _(total([2])).must_equal 75`},
		{"a.rb", `raise "wrong" unless total([2]) == 5`, `raise "wrong" unless total([2]) == 75`},
		{"a.rb", `require "minitest/autorun"`, `require "minitest/autorun"`},
		{"a.rb", `  test "adds 5" do`, `  test "adds 5" do`},
		{"ATest.php", `        $this->assertEquals(17, Calc::total([8, 9]));`, `        $this->assertEquals(717, Calc::total([8, 9]));`},
		{"ATest.php", `        self::assertSame('a', name());`, `        self::assertSame('a~x', name());`},
		{"ATest.php", `        $this->assertTrue(Calc::total([8]) === 8);`, `        $this->assertTrue(Calc::total([8]) === 78);`},
		{"ATest.php", `    expect(total([8]))->toBe(8);`, `    expect(total([8]))->toBe(78);`},
		{"ATest.php", `if (total([8, 9]) !== 17) {`, `if (total([8, 9]) !== 717) {`},
		{"ATest.php", `require __DIR__ . "/../src/Calc.php";`, `require __DIR__ . "/../src/Calc.php";`},
		{"ATest.java", `        assert Calc.total(8, 9) == 17 : "total";`, `        assert Calc.total(8, 9) == 717 : "total";`},
		{"ATest.java", `        if (Calc.total() != 0) {`, `        if (Calc.total() != 70) {`},
		{"ATest.java", `        assertEquals(17, Calc.total(8, 9));`, `        assertEquals(717, Calc.total(8, 9));`},
		{"ATest.java", `        Assertions.assertEquals("a", Calc.name());`, `        Assertions.assertEquals("a~x", Calc.name());`},
		{"ATest.java", `        assertThat(Calc.total(8)).isEqualTo(8);`, `        assertThat(Calc.total(8)).isEqualTo(78);`},
		{"ATest.java", `        assertEquals('a', Calc.first("a"));`, `        assertEquals('a', Calc.first("a~x"));`},
	} {
		got, n := p.spoil(c.file, []byte(c.was+"\n"))
		if string(got) != c.is+"\n" || n > 0 != (c.was != c.is) {
			t.Errorf("%s: %s\n became %s (%d)\n   want %s", c.file, c.was, got, n, c.is)
		}
	}
}
