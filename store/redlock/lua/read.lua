
-- KEYS 9: bucket
-- ARGV token or nothing, replica, nonce, bytes and records of a page, then the keys wanted; none: all, where they fit into a
-- page
-- Returns {ok, ..., head, marker, held, keys, values}. Keys beyond the page have no value; a key without a record has nil.

local err = check() or check_buckets(9)
if err then
  return err
end
local keys, values, size = {}, {}, 0
if #ARGV > 5 then
  for i = 6, #ARGV do
    keys[i - 5] = ARGV[i]
  end
else
  keys = redis.call('HKEYS', KEYS[9])
  if #keys > tonumber(ARGV[5]) then
    return report('ok', ARGV[1], ARGV[2], ARGV[3], keys, values)
  end
end
for i, key in ipairs(keys) do
  values[i] = redis.call('HGET', KEYS[9], key)
  size = size + #(values[i] or '')
  if size >= tonumber(ARGV[4]) then
    break
  end
end
return report('ok', ARGV[1], ARGV[2], ARGV[3], keys, values)
