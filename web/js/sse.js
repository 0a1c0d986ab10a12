// Server-sent events, as far as chat completions use them.

/**
 * The data of each event of a response's body, in order, however they are split on
 * arrival. Comments and other fields are skipped.
 * @param {ReadableStream<BufferSource>} body
 * @returns {AsyncGenerator<string>}
 */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  /** @type {string[]} */
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      // A "\r" at the end may be half of a line's end.
      const lines = (rest + (done ? '\n\n' : value)).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (data.length) yield data.join('\n');
          data = [];
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        }
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => {}); // the connection has already ended
  }
}
