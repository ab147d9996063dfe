-- KEYS inbox
-- ARGV id, message, messages at most, channel
-- Returns {ok} or {full}.

local err = foreign(KEYS[1], 'hash')
if err then
  return err
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
    return {'full'}
  end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
publish(ARGV[4])
return {'ok'}
