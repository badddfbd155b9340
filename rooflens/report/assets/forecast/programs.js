// The formulas of `rooflens predict`, traced by `rooflens/report/forecast/programs.py`: run step by step.
lens.programs = (() => {
  const DO = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "//": (a, b) => Math.floor(a / b),
    "%": (a, b) => ((a % b) + b) % b,
    "**": (a, b) => a ** b,
    neg: (a) => -a,
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    "==": (a, b) => a === b,
    "?": (is, yes, no) => (is ? yes : no),
    inf: () => Infinity,
  };

  // What every step makes, for these inputs; steps only look back.
  function run(steps, inputs, count = steps.length) {
    const made = [];
    for (let i = 0; i < count; i += 1) {
      const step = steps[i];
      if (!Array.isArray(step)) made.push(step);
      else if (step[0] === "in") made.push(inputs[step[1]]);
      else made.push(DO[step[0]](made[step[1]], made[step[2]], made[step[3]]));
    }
    return made;
  }

  const read = (numbers, made) => Object.fromEntries(Object.entries(numbers).map(([name, at]) => [name, made[at]]));

  // What sizes alone decide: why they do not fit one another, in words, and how many GPUs share the operation.
  function check(operation, sizes) {
    const made = run(operation.steps, sizes, operation.early);
    const refusal = made[operation.refusal];
    return {
      refusal: refusal && refusal.replace(/\{(\d+)\}/g, (_, number) => made[number].toLocaleString("en")),
      group: made[operation.group],
    };
  }

  // The forecast under the names of `--format json`.
  function forecast(operation, inputs) {
    const made = run(operation.steps, inputs);
    return {
      ...read(operation.whole, made),
      parts: operation.parts.map(({ label, ...numbers }) => ({ label, ...read(numbers, made) })),
    };
  }

  return { check, forecast };
})();
