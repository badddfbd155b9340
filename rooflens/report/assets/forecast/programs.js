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
  function run(steps, inputs) {
    const made = [];
    for (const step of steps) {
      if (!Array.isArray(step)) made.push(step);
      else if (step[0] === "in") made.push(inputs[step[1]]);
      else made.push(DO[step[0]](...step.slice(1).map((number) => made[number])));
    }
    return made;
  }

  const read = (numbers, made) => Object.fromEntries(Object.entries(numbers).map(([name, at]) => [name, made[at]]));

  // How many GPUs share an operation: the link between them is chosen before the rest can be worked out.
  const group = (operation, inputs) => run(operation.steps, inputs)[operation.group];

  // The forecast under the names of `--format json`; `refusal` says in words why the sizes do not fit one another.
  function forecast(operation, inputs) {
    const made = run(operation.steps, inputs);
    const refusal = made[operation.refusal];
    return {
      refusal: refusal && refusal.replace(/\{(\d+)\}/g, (_, number) => made[number].toLocaleString("en")),
      ...read(operation.whole, made),
      parts: operation.parts.map(({ label, ...numbers }) => ({ label, ...read(numbers, made) })),
    };
  }

  return { forecast, group };
})();
