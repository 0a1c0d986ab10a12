// Expressions of numbers, read by descent: nothing of them is ever run as code.

const mostLength = 1000, mostDepth = 100;

/** The value of an expression, or an Error that says what is wrong. @param {string} written @returns {number} */
export function calculate(written) {
  if (written.length > mostLength) throw new Error(`an expression may have ${mostLength} characters`);
  const tokens = written.replaceAll('**', '^').match(/\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|\S/gi) ?? [];
  let at = 0, depth = 0;

  function sum() {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-') value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  }
  function product() {
    let value = signed();
    while (['*', '/', '%'].includes(tokens[at])) {
      const by = tokens[at++], right = signed();
      value = by === '*' ? value * right : by === '/' ? value / right : value % right;
    }
    return value;
  }
  /** @returns {number} */
  function signed() {
    if (++depth > mostDepth) throw new Error(`an expression may be ${mostDepth} deep`);
    const sign = tokens[at] === '-' ? -1 : 1;
    const value = tokens[at] === '-' || tokens[at] === '+' ? (at++, sign * signed()) : power();
    depth--;
    return value;
  }
  /** @returns {number} */
  function power() {
    const base = primary();
    if (tokens[at] !== '^') return base;
    at++;
    return base ** signed();
  }
  function primary() {
    const token = tokens[at++];
    if (token === '(') {
      const value = sum();
      if (tokens[at++] !== ')') throw new Error('a ) is missing');
      return value;
    }
    if (token === undefined || !/^[\d.]/.test(token) || Number.isNaN(Number(token))) throw new Error(token === undefined ? 'the expression ends too early' : `${token} is not expected`);
    return Number(token);
  }

  const value = sum();
  if (at < tokens.length) throw new Error(`${tokens[at]} is not expected`);
  if (!Number.isFinite(value)) throw new Error('the value is not finite');
  return Number(value.toPrecision(15));
}
