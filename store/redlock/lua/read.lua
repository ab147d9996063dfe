
-- KEYS 9: bucket
-- ARGV token or nothing, replica, nonce, bytes and records of a page, then the keys wanted; none: all, where they fit into a
-- page
-- Returns {ok, ..., head, marker, held, keys, values}. Keys beyond the page have no value; a key without a record has nil. A
-- leader whose term has not come here yet is told the messages, too, that the last step has deleted.

local err = check() or foreign(deleted, 'hash') or check_buckets(9)
if err then
  return err
end
local keys, values, size = {}, {}, 0
local head = redis.call('HGET', ledger, 'head') or '0'
local all = KEYS[9] == inbox and ARGV[1] ~= '' and string.match(head, '^%d+') ~= ARGV[1]
if #ARGV > 5 then
  for i = 6, #ARGV do
    keys[i - 5] = ARGV[i]
  end
else
  keys = redis.call('HKEYS', KEYS[9])
  if all then
    for _, id in ipairs(redis.call('HKEYS', deleted)) do
      if redis.call('HEXISTS', inbox, id) == 0 then
        keys[#keys + 1] = id
      end
    end
  end
  if #keys > tonumber(ARGV[5]) then
    return report('ok', ARGV[1], ARGV[2], ARGV[3], keys, values)
  end
end
for i, key in ipairs(keys) do
  values[i] = redis.call('HGET', KEYS[9], key) or all and redis.call('HGET', deleted, key)
  size = size + #(values[i] or '')
  if size >= tonumber(ARGV[4]) then
    break
  end
end
return report('ok', ARGV[1], ARGV[2], ARGV[3], keys, values)
